"""Publishes a version as Iceberg: manifests, their list, the metadata, and last the version hint.

Names and bytes follow from the rows alone, so that an interrupted publication is simply made again.
"""

from collections.abc import Callable, Mapping, Sequence

from lakebed.core.crash import crash_point
from lakebed.core.ledger import Ledger, VersionView
from lakebed.core.outbox import Published
from lakebed.formats.base import record
from lakebed.formats.iceberg.names import VERSION_HINT, Names, number_in_hint
from lakebed.formats.iceberg.run import METADATA, Run
from lakebed.formats.iceberg.shown import show
from lakebed.model.errors import ForeignCommit, ObjectMissing, PublishError
from lakebed.model.history import ICEBERG, CommitRecord, PublicationRecord
from lakebed.model.ids import MAIN_LINE, Line, Version
from lakebed.model.settings import Value
from lakebed.storage.base import Bundle, Storage

_REFS = "refs"
_LOG_LENGTH = 10
_ANY = Version(2**62)


class IcebergPublisher:
    """`settings` gives a setting's value for a table with these properties."""

    format = ICEBERG

    def __init__(
        self, storage: Storage, settings: Callable[[str, Mapping[str, str]], Value]
    ) -> None:
        self._storage = storage
        self._settings = settings

    def publish(self, ledger: Ledger, view: VersionView, kind: str) -> Published:
        """Write the files of a version; `start` shows all live files, `commit` what it changed.

        `refs` shows the branches and tags there are now, beside what is published already.
        """
        earlier = ledger.publications(ICEBERG, METADATA, _LOG_LENGTH)
        if kind == _REFS:
            return self._publish_refs(ledger, view, earlier)
        line = view.commit.line
        newest = next((p for p in earlier if p.line == line), None)
        if newest is not None and newest.version >= view.commit.version:
            # Somebody else was faster; what is recorded stays as it is.
            _move_hint(self._storage, view, earlier[0].number)
            return Published(())
        number = earlier[0].number + 1 if earlier else 0
        while True:
            try:
                return self._publish_version(ledger, view, kind, earlier, number)
            except ForeignCommit:
                if kind != "start":
                    raise
                number += 1  # taken by one that was under way when the format was turned off

    def _publish_version(
        self,
        ledger: Ledger,
        view: VersionView,
        kind: str,
        earlier: list[PublicationRecord],
        number: int,
    ) -> Published:
        with self._storage.bundle(_crash_after) as files:
            run = Run(files, ledger, view, Names(view.head.uuid, number))
            snapshots = run.write_snapshot(kind)
            keep = int(self._settings("publish.iceberg.keep", view.state.properties))
            on_main = view.commit.line == MAIN_LINE
            main = view.commit if on_main else _newest_commit(ledger, earlier, MAIN_LINE)
            shown = show(ledger, main, snapshots, keep)
            path, data = run.write_metadata(view.state, shown, main, earlier)
            _move_hint(files, view, number)
        written = record(METADATA, format_=ICEBERG, number=number, view=view, path=path, data=data)
        return Published(
            (*run.contents.puffins.values(), written),
            manifests_added=tuple(run.manifests_added),
            manifests_retired=tuple(run.manifests_retired),
            manifest_lists={s.id: s.manifest_list for s in snapshots if s.manifest_list},
        )

    def _publish_refs(
        self, ledger: Ledger, view: VersionView, earlier: list[PublicationRecord]
    ) -> Published:
        if not any(p.line == MAIN_LINE for p in earlier) and (
            ledger.publication_at(ICEBERG, METADATA, MAIN_LINE, view.commit.version) is None
        ):
            return Published(())  # whatever shows the table first shows its refs too
        newest = _commit_of(ledger, earlier[0].line, earlier[0].version)
        state = ledger.state(newest.state_id)
        keep = int(self._settings("publish.iceberg.keep", state.properties))
        shown = show(ledger, _newest_commit(ledger, earlier, MAIN_LINE), (), keep)
        number = earlier[0].number + 1
        ours = False
        while not ours:
            with self._storage.bundle(_crash_after) as files:
                run = Run(files, ledger, view, Names(view.head.uuid, number))
                path, data = run.write_metadata(state, shown, view.commit, earlier)
                ours = data == run.rendered
                if ours:
                    _move_hint(files, view, number)
                else:
                    number += 1  # an earlier try wrote it, and the refs have changed since
        written = record(METADATA, format_=ICEBERG, number=number, view=view, path=path, data=data)
        return Published((written,))


def _move_hint(files: Bundle, view: VersionView, number: int) -> None:
    """Point readers of the folder at a publication, never back to an earlier one."""
    path, uuid = f"{view.head.location}/{VERSION_HINT}", view.head.uuid
    try:
        standing = number_in_hint(uuid, files.get(path))
    except ObjectMissing:
        standing = None
    if standing is None or standing < number:
        files.replace(path, Names(uuid, number).stem.encode())


def _crash_after(path: str) -> None:
    """Each kind of file, once it can be seen, is a step at which a publication may end."""
    name = path.rpartition("/")[2]
    if name.endswith(".puffin"):
        crash_point("publish_iceberg_after_vectors")
    elif name.startswith("snap-"):
        crash_point("publish_iceberg_after_list")
    elif name.endswith(".avro"):
        crash_point("publish_iceberg_after_manifest")
    elif name.endswith(".metadata.json"):
        crash_point("publish_iceberg_after_metadata")


def _newest_commit(
    ledger: Ledger, earlier: Sequence[PublicationRecord], line: Line
) -> CommitRecord:
    """The newest commit of a line that is published."""
    found = next((p for p in earlier if p.line == line), None)
    if found is None:
        found = ledger.publication_at(ICEBERG, METADATA, line, _ANY)
    if found is None:
        raise PublishError(
            "main is not published, so a branch of it cannot be",
            hint="turn Iceberg publication off and on again for this table to start afresh",
        )
    return _commit_of(ledger, line, found.version)


def _commit_of(ledger: Ledger, line: Line, version: Version) -> CommitRecord:
    (found,) = ledger.commits_until(version, line, 1)
    return found
