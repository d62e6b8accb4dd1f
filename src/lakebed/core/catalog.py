"""Namespaces and tables by name: create, list, rename, drop. Each call is one SQL transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from lakebed.core.crash import crash_point
from lakebed.core.lines import commit_at_time, find_commit
from lakebed.core.naming import ensure_namespace, free_locations, refuse_view
from lakebed.core.refs import branch_of
from lakebed.meta import commits, lakes, namespaces, outbox, tables, views
from lakebed.meta.store import Store, Tx
from lakebed.model.errors import (
    InvalidInput,
    NamespaceExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
    TableExists,
    TableNotFound,
    VersionNotFound,
)
from lakebed.model.history import MAIN, CommitRecord, TableHead, TableState
from lakebed.model.ids import MAIN_LINE, StateId, TableId, Version
from lakebed.model.names import TableName
from lakebed.model.nearest import nearest

PURGE = ("-", "purge")
_SKEW_MS = 60_000  # the clocks of a caller and of the database may differ by so much


class Catalog:
    def __init__(self, store: Store) -> None:
        self._store = store

    def settings(self) -> dict[str, str]:
        with self._store.read() as tx:
            return lakes.list_settings(tx)

    def put_setting(self, name: str, value: str | None) -> None:
        with self._store.write() as tx:
            lakes.put_setting(tx, name, value)

    def create_namespace(
        self, levels: tuple[str, ...], properties: Mapping[str, str], *, exist_ok: bool
    ) -> None:
        name = ".".join(levels)
        with self._store.write() as tx:
            if len(levels) > 1:
                ensure_namespace(tx, levels[:-1])
            if not namespaces.insert_namespace(tx, name, properties) and not exist_ok:
                raise NamespaceExists(
                    f"namespace {name} exists already",
                    hint="pass exist_ok=True to accept that",
                    namespace=name,
                )

    def namespace_properties(self, levels: tuple[str, ...]) -> dict[str, str]:
        with self._store.read() as tx:
            return _namespace(tx, levels)[1]

    def set_namespace_properties(
        self, levels: tuple[str, ...], changed: Mapping[str, str], removed: tuple[str, ...]
    ) -> dict[str, str]:
        with self._store.write() as tx:
            _, properties = _namespace(tx, levels)
            kept = {k: v for k, v in properties.items() if k not in removed}
            after = {**kept, **changed}
            namespaces.update_namespace(tx, ".".join(levels), after)
        return after

    def list_namespaces(self, parent: tuple[str, ...] | None) -> list[str]:
        """Direct children; all namespaces at every depth when parent is None."""
        with self._store.read() as tx:
            if parent:
                _namespace(tx, parent)
            return namespaces.list_namespaces(tx, None if parent is None else ".".join(parent))

    def drop_namespace(self, levels: tuple[str, ...]) -> None:
        name = ".".join(levels)
        with self._store.write() as tx:
            namespace_id, _ = _namespace(tx, levels)
            namespaces.lock_namespace(tx, name)
            if namespaces.list_namespaces(tx, name) or tables.list_tables(tx, name):
                raise NamespaceNotEmpty(
                    f"namespace {name} is not empty",
                    hint="drop its tables and namespaces first",
                    namespace=name,
                )
            if views.list_views(tx, name):
                raise NamespaceNotEmpty(
                    f"namespace {name} holds views", hint="drop them first", namespace=name
                )
            if namespaces.has_tables(tx, namespace_id):
                raise NamespaceNotEmpty(
                    f"namespace {name} holds dropped tables whose files are kept",
                    hint="purge them first: lakebed table purge NAME",
                    namespace=name,
                )
            namespaces.delete_namespace(tx, namespace_id)

    def find(self, name: TableName) -> TableHead:
        with self._store.read() as tx:
            return find_table(tx, name)

    def find_beside(
        self, name: TableName, seen: Sequence[TableHead], branch: str = MAIN
    ) -> TableHead:
        """A branch as it was when those heads were the newest ones of their tables."""
        with self._store.read() as tx:
            head = branch_of(tx, find_table(tx, name), branch)
            later = [commits.get_commit(tx, s.id, Version(s.version + 1), s.line) for s in seen]
            moved = [commit.time_ms for commit in later if commit is not None]
            if not moved or head.time_ms < min(moved):
                return head
            then = _commit_at(tx, head, min(moved) - 1)
            state_id = then.state_id if head.line == MAIN_LINE else head.state_id
            return replace(head, version=then.version, time_ms=then.time_ms, state_id=state_id)

    def get(self, table_id: TableId, name: str) -> TableHead:
        """By id, so that a handle survives a rename; `name` is for the error only."""
        with self._store.read() as tx:
            head = tables.find_by_id(tx, table_id)
            if head is not None:
                tables.get_state(tx, head.id, head.state_id)  # asked for next, and then known
        if head is None:
            raise TableNotFound(
                f"table {name} was dropped", hint="open a table by its name again", table=name
            )
        return head

    def find_many(self, names: list[TableName]) -> list[TableHead]:
        """One consistent set of heads."""
        with self._store.read() as tx:
            return [find_table(tx, name) for name in names]

    def exists(self, name: TableName) -> bool:
        with self._store.read() as tx:
            return tables.find_table(tx, name) is not None

    def list_tables(self, levels: tuple[str, ...] | None) -> list[TableHead]:
        with self._store.read() as tx:
            if levels is not None:
                _namespace(tx, levels)
            return tables.list_tables(tx, ".".join(levels) if levels is not None else None)

    def state(self, head: TableHead, state_id: StateId) -> TableState:
        known = tables.known_state(self._store, head.id, state_id)
        if known is not None:
            return known
        with self._store.read() as tx:
            return tables.get_state(tx, head.id, state_id)

    def free_locations(self, name: TableName, uuid: str) -> list[str]:
        with self._store.read() as tx:
            if tables.find_table(tx, name) is not None:
                raise TableExists(
                    f"table {name} exists already",
                    hint="choose another name, or open it with lake.table()",
                    table=str(name),
                )
            return free_locations(tx, name, uuid)

    def rename(self, old: TableName, new: TableName) -> None:
        """The folder stays where it is: a rename moves no byte."""
        with self._store.write() as tx:
            tables.lock_tables(tx, [find_table(tx, old).id])
            head = find_table(tx, old)  # as it is now that nobody else can rename or drop it
            namespace_id = ensure_namespace(tx, new.namespace)
            if old != new and tables.find_table(tx, new) is not None:
                raise TableExists(f"table {new} exists already", hint="choose another name")
            refuse_view(tx, new)
            tables.rename_table(tx, head.id, namespace_id, new.name)

    def drop(self, name: TableName, *, purge: bool) -> TableHead:
        """Without purge the files stay and the folder stays reserved."""
        with self._store.write() as tx:
            tables.lock_tables(tx, [find_table(tx, name).id])
            head = find_table(tx, name)  # as it is now that nobody else can rename or drop it
            tables.mark_dropped(tx, head.id)
            if purge:
                outbox.insert_outbox(tx, head.id, head.version, [PURGE], tx.now_ms())
        crash_point("drop_after_sql")
        return head

    def dropped(self) -> list[TableHead]:
        with self._store.read() as tx:
            return tables.dropped_tables(tx)

    def purge_dropped(self, head: TableHead) -> None:
        with self._store.write() as tx:
            outbox.insert_outbox(tx, head.id, head.version, [PURGE], tx.now_ms())

    def resolve(self, head: TableHead, *, version: int | None, time_ms: int | None) -> CommitRecord:
        """The commit that a version or a time names; the head when neither is given."""
        if version is not None and time_ms is not None:
            raise InvalidInput("give a version or a timestamp, not both", hint="leave one out")
        with self._store.read() as tx:
            if time_ms is not None:
                return _commit_at(tx, head, time_ms)
            wanted = Version(head.version if version is None else version)
            found = find_commit(tx, head.id, wanted, head.line)
            if found is None:
                first = commits.first_commit(tx, head.id)
                oldest = first.version if first else 0
                raise VersionNotFound(
                    f"table {head.name} has no version {wanted}",
                    hint=f"its versions are {oldest} to {head.version}",
                    table=str(head.name),
                    version=wanted,
                )
            return found


def find_table(tx: Tx, name: TableName) -> TableHead:
    head = tables.find_table(tx, name)
    if head is not None:
        return head
    namespace = ".".join(name.namespace)
    there = namespaces.find_namespace(tx, namespace) is not None
    known = [str(h.name) for h in tables.list_tables(tx, namespace if there else None)]
    close = nearest(str(name), known)
    hint = f"did you mean {close[0]}?" if close else "`lakebed table list` shows the tables"
    raise TableNotFound(f"there is no table {name}", hint=hint, table=str(name))


def _namespace(tx: Tx, levels: tuple[str, ...]) -> tuple[int, dict[str, str]]:
    name = ".".join(levels)
    found = namespaces.find_namespace(tx, name)
    if found is None:
        close = nearest(name, namespaces.list_namespaces(tx, None))
        raise NamespaceNotFound(
            f"there is no namespace {name}",
            hint=f"did you mean {close[0]}?"
            if close
            else "`lakebed namespace list` shows the namespaces",
            namespace=name,
        )
    return found


def _shown_time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")


def _commit_at(tx: Tx, head: TableHead, time_ms: int) -> CommitRecord:
    found = commit_at_time(tx, head.id, time_ms, head.line)
    if found is None:
        first = commits.first_commit(tx, head.id)
        raise VersionNotFound(
            f"table {head.name} did not exist yet at that time",
            hint=f"its first commit was made at {_shown_time(first.time_ms if first else 0)}",
            table=str(head.name),
        )
    if time_ms > max(head.time_ms, tx.now_ms() + _SKEW_MS):
        raise VersionNotFound(
            f"{_shown_time(time_ms)} is still to come: nobody knows what {head.name} will be",
            hint=f"its newest version is {head.version}, made at {_shown_time(head.time_ms)}",
            table=str(head.name),
        )
    return found
