"""Branches and tags of a table: made, dropped, listed, kept, and the history of each."""

from abc import ABC, abstractmethod
from datetime import datetime, timedelta

from lakebed.api.options import check_number
from lakebed.api.parts import Parts
from lakebed.api.points import Point, to_point
from lakebed.api.transaction import BACKGROUND, publish_now, to_commit, warn
from lakebed.core.refs import Retention
from lakebed.model.errors import InvalidInput, NoChanges, UnsupportedFeature
from lakebed.model.history import BRANCH, MAIN, TAG, Commit, Ref, TableHead
from lakebed.model.ids import Line
from lakebed.security.policy import Action

Age = timedelta | int  # an int is milliseconds
_FAR_MS = 2**62


class HasRefs(ABC):
    """What a table's handle does with branches and tags."""

    _parts: Parts

    @abstractmethod
    def _head(self, action: Action, ref: str | None = None) -> TableHead: ...

    def refs(self) -> list[Ref]:
        """Main first, then branches and tags by name; branches as they are now."""
        return self._parts.refs.list(self._head("read", MAIN))

    def create_branch(
        self,
        name: str,
        *,
        version: int | None = None,
        timestamp: datetime | str | int | None = None,
        ref: str | None = None,
        max_age: Age | None = None,
        min_snapshots: int | None = None,
        max_snapshot_age: Age | None = None,
    ) -> Ref:
        """A line of its own that begins at a version: the newest one, unless told otherwise.

        The retentions are Iceberg's: how long the ref is kept, and how many and how old snapshots.
        """
        kept = _retention(BRANCH, max_age, min_snapshots, max_snapshot_age)
        return self._create(name, BRANCH, to_point(version, timestamp, ref), kept)

    def create_tag(
        self,
        name: str,
        *,
        version: int | None = None,
        timestamp: datetime | str | int | None = None,
        ref: str | None = None,
        max_age: Age | None = None,
    ) -> Ref:
        """A name for one version: the newest one, unless told otherwise."""
        kept = _retention(TAG, max_age, None, None)
        return self._create(name, TAG, to_point(version, timestamp, ref), kept)

    def drop_branch(self, name: str) -> None:
        """What only the branch has is out of sight, and goes when old versions are expired."""
        self._drop(name, BRANCH)

    def drop_tag(self, name: str) -> None:
        self._drop(name, TAG)

    def set_retention(
        self,
        name: str,
        *,
        max_age: Age | None = None,
        min_snapshots: int | None = None,
        max_snapshot_age: Age | None = None,
    ) -> Ref:
        """How long a ref and its snapshots are kept; what is left out is as the settings say."""
        main = self._changing(name)
        kind = self._parts.refs.find(main, name).kind
        kept = _retention(kind, max_age, min_snapshots, max_snapshot_age)
        ref = self._parts.refs.keep(main, name, kept)
        self._publish(main)
        return ref

    def _create(self, name: str, kind: str, point: Point, kept: Retention) -> Ref:
        main = self._head("alter", MAIN)
        line = point.head(self._parts, main) if point.ref else self._head("read")
        version = point.commit(self._parts, line).version
        ref = self._parts.refs.create(line, _checked(name), kind, version, kept)
        self._publish(main)
        return ref

    def _drop(self, name: str, kind: str) -> None:
        main = self._changing(name)
        self._parts.refs.drop(main, name, kind)
        self._publish(main)

    def _changing(self, name: str) -> TableHead:
        if _checked(name) == MAIN:
            raise InvalidInput(
                "main is the table itself: it cannot be dropped, and the table's settings say how"
                " long its versions are kept",
                hint="name another branch or a tag",
            )
        return self._head("alter", MAIN)

    def _publish(self, main: TableHead) -> None:
        reason = publish_now(self._parts, main, None, None)
        if reason is not None and reason != BACKGROUND:
            warn(f"the refs of {main.name} have changed but are not published: {reason}")

    def _forward_line(self, branch: str, to: str) -> Line:
        """The line that a branch is to become."""
        main = self._head("write", MAIN)
        if branch != MAIN:
            raise UnsupportedFeature(
                f"only main can be fast-forwarded, not {branch}",
                hint="drop the branch, and create it again at the version it should have",
            )
        if to == MAIN:
            raise NoChanges("main is what it is already", hint="name a branch")
        return self._parts.refs.on_branch(main, _checked(to)).line


def list_commits(parts: Parts, head: TableHead, limit: int) -> list[Commit]:
    """The newest commits of a line, newest first, with what waits to be published."""
    ledger = parts.outbox.ledger(head.id)
    waiting = {(r.line, r.version): r for r in ledger.pending() if r.kind in ("commit", "start")}
    names = parts.refs.names(head)
    listed = []
    for commit in ledger.commits_until(head.version, head.line, limit):
        row = waiting.get((commit.line, commit.version))
        reason = (row.error or "waiting") if row is not None else None
        listed.append(to_commit(head, commit, reason=reason, names=names))
    return listed


def _checked(name: object) -> str:
    if not isinstance(name, str):
        raise InvalidInput(f"{name!r} is no name", hint="give the name of a branch or tag")
    return name


def _retention(
    kind: str, max_age: Age | None, min_snapshots: int | None, max_snapshot_age: Age | None
) -> Retention:
    if kind == TAG and (min_snapshots, max_snapshot_age) != (None, None):
        raise InvalidInput(
            "a tag is one snapshot: only its own age can be limited", hint="give max_age alone"
        )
    if min_snapshots is not None and check_number("min_snapshots", min_snapshots) < 1:
        raise InvalidInput(f"min_snapshots {min_snapshots} is below 1", hint="keep one at least")
    return Retention(
        _age_ms("max_age", max_age), min_snapshots, _age_ms("max_snapshot_age", max_snapshot_age)
    )


def _age_ms(argument: str, age: Age | None) -> int | None:
    if age is None:
        return None
    number = age // timedelta(milliseconds=1) if isinstance(age, timedelta) else age
    if not 0 < check_number(argument, number) < _FAR_MS:
        raise InvalidInput(f"{argument} {age} is not above zero", hint="timedelta(days=7)")
    return number
