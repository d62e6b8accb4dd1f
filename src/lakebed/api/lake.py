"""A lake: its namespaces, its tables, transactions over several of them, and how it is doing."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from lakebed.api.creating import NewTable, TableOptions, shape_of, stage_table
from lakebed.api.datafusion import session_of
from lakebed.api.options import CommitOptions, Options, check_options, digest_of
from lakebed.api.parts import Parts
from lakebed.api.runs import Runs
from lakebed.api.settings import Resolved
from lakebed.api.spark import Spark, SparkOptions, session_from
from lakebed.api.sql.result import Result
from lakebed.api.sql.session import Parameters, SqlSession
from lakebed.api.status import Status, status_of
from lakebed.api.table import Table
from lakebed.api.transaction import Transaction, refuse_branch, replay, warn
from lakebed.api.write_task import WriteTask, Written
from lakebed.api.written import WrittenRows, commit_new, discard, new_task, task_for
from lakebed.formats.follower import Follower, Turn
from lakebed.maintenance.check import Check, Repair
from lakebed.maintenance.findings import Report
from lakebed.model.errors import TableExists, TableNotFound
from lakebed.model.history import Commit, TableHead
from lakebed.model.ids import MAIN_LINE
from lakebed.model.names import parse_namespace, parse_table_name, parse_table_ref
from lakebed.model.properties import check_removed, check_texts
from lakebed.model.settings import find_setting, parse_setting
from lakebed.model.views import View
from lakebed.security.policy import Action, require

if TYPE_CHECKING:
    from datafusion import SessionContext
    from pyspark.sql import SparkSession

_CLOSE_WAIT_S = 10.0
_UPKEEP_WAIT_S = 2.0  # nothing depends on it


class Lake:
    """Thread-safe: one handle may be shared by all threads of a process."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    @property
    def uri(self) -> str:
        return self._parts.uri

    @property
    def warehouse(self) -> str:
        return self._parts.storage.root_uri

    def create_namespace(
        self, name: str, properties: Mapping[str, str] | None = None, *, exist_ok: bool = False
    ) -> None:
        self._may("create", name)
        self._parts.catalog.create_namespace(
            parse_namespace(name), check_texts(properties or {}), exist_ok=exist_ok
        )

    def namespaces(self, parent: str | None = None) -> list[str]:
        """Every namespace at every depth; only the direct children of `parent` when given."""
        self._may("read", parent or "*")
        return self._parts.catalog.list_namespaces(
            None if parent is None else parse_namespace(parent)
        )

    def namespace_properties(self, name: str) -> dict[str, str]:
        self._may("read", name)
        return self._parts.catalog.namespace_properties(parse_namespace(name))

    def set_namespace_properties(
        self, name: str, changed: Mapping[str, str] | None = None, *, removed: Sequence[str] = ()
    ) -> dict[str, str]:
        self._may("alter", name)
        return self._parts.catalog.set_namespace_properties(
            parse_namespace(name), check_texts(changed or {}), check_removed(removed)
        )

    def drop_namespace(self, name: str) -> None:
        """Only an empty one."""
        self._may("drop", name)
        self._parts.catalog.drop_namespace(parse_namespace(name))

    def create_table(
        self,
        name: str,
        schema: object,
        *,
        partition_by: Sequence[str] = (),
        sort_by: Sequence[str] = (),
        primary_key: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        formats: str | Sequence[str] | None = None,
        comment: str | None = None,
        constraints: Mapping[str, str] | None = None,
        **options: Unpack[CommitOptions],
    ) -> Table:
        """Create a table from a schema text, an Arrow schema, or data (which becomes version 0).

        Missing namespaces are made. Example:

            lake.create_table("sales.orders", "id long, ts timestamp", partition_by=["day(ts)"])
        """
        self._may("create", name)
        new = NewTable(
            partition_by, sort_by, primary_key, properties, formats, comment, constraints
        )
        checked = check_options(options)
        refuse_branch(checked)
        table_name = parse_table_name(name)
        digest = digest_of("create", table_name, shape_of(schema), new)
        earlier = self._created(checked, digest)
        if earlier is not None:
            return earlier
        try:
            with Transaction(self._parts, checked, digest) as transaction:
                staged, rows = stage_table(self._parts, table_name, schema, new)
                table = transaction.stage_new(str(table_name), staged)
                if rows is not None:
                    table.append(rows)
        except TableExists:
            # By the same request, perhaps, which was faster somewhere else.
            earlier = self._created(checked, digest)
            if earlier is None:
                raise
            return earlier
        return self.table(str(table_name))

    def _created(self, options: Options, digest: str) -> Table | None:
        """The table that an idempotency key made before, if it did."""
        if options.idempotency_key is None:
            return None
        places = self._parts.committer.answered(
            self._parts.principal.name, options.idempotency_key, digest
        )
        if places is None:
            return None
        return self.table(next(iter(replay(self._parts, places, options.publish))))

    def table(self, name: str) -> Table:
        """A handle; `ns.table@ref` is the table as a branch or tag has it."""
        self._may("read", name)
        wanted, ref = parse_table_ref(name)
        head = self._parts.catalog.find(wanted)
        if ref is not None:
            self._parts.refs.find(head, ref)
        return Table(self._parts, head, ref)

    def has_table(self, name: str) -> bool:
        self._may("read", name)
        return self._parts.catalog.exists(parse_table_name(name))

    def tables(self, namespace: str | None = None) -> list[str]:
        self._may("read", namespace or "*")
        levels = None if namespace is None else parse_namespace(namespace)
        return [str(head.name) for head in self._parts.catalog.list_tables(levels)]

    def rename_table(self, name: str, new_name: str) -> None:
        """A new name for the same table; its folder stays where it is."""
        self._may("alter", name)
        self._parts.catalog.rename(parse_table_name(name), parse_table_name(new_name))

    def drop_table(self, name: str, *, purge: bool = False) -> None:
        """Forget a table; its files stay unless purged, and so does its folder's name."""
        self._may("drop", name)
        head = self._parts.catalog.drop(parse_table_name(name), purge=purge)
        if purge:
            self._purge(head)

    def dropped_tables(self) -> list[tuple[str, str]]:
        """(name, folder) of dropped tables whose files are kept."""
        self._may("admin", "*")
        return [
            (str(head.name), self._parts.storage.location(head.location))
            for head in self._parts.catalog.dropped()
        ]

    def purge_table(self, name: str) -> int:
        """Delete the files of dropped tables of this name; how many tables they were."""
        self._may("drop", name)
        wanted = parse_table_name(name)
        found = [head for head in self._parts.catalog.dropped() if head.name == wanted]
        if not found:
            raise TableNotFound(
                f"there is no dropped table {name}", hint="drop_table(name, purge=True) does both"
            )
        for head in found:
            self._parts.catalog.purge_dropped(head)
        return sum(self._purge(head) for head in found)

    def sql(
        self,
        text: str,
        params: Parameters = None,
        *,
        allow_files: Sequence[str | Path] = (),
        **options: Unpack[CommitOptions],
    ) -> Result:
        """Run SQL: `lake.sql("SELECT * FROM sales.orders WHERE id = ?", [5]).to_arrow()`.

        Tables are read at one set of versions. Of several statements the answer is the last one's;
        a transaction left open is rolled back. COPY may only touch files inside `allow_files`.
        """
        with self.sql_session(allow_files=allow_files) as session:
            return session.sql(text, params, **options)

    def sql_session(self, *, allow_files: Sequence[str | Path] = ()) -> SqlSession:
        """Statements one after the other: USE and BEGIN hold until the session is closed."""
        return SqlSession(self._parts, self, allow_files=allow_files)

    def views(self, namespace: str | None = None) -> list[View]:
        self._may("read", namespace or "*")
        levels = None if namespace is None else parse_namespace(namespace)
        return self._parts.views.list(levels)

    def create_view(self, view: View, *, replace: bool = False) -> None:
        """Keep a query under a name, to be read like a table in SQL."""
        self._may("create", str(view.name))
        self._parts.views.create(view, replace=replace)

    def drop_view(self, name: str) -> None:
        self._may("drop", name)
        self._parts.views.drop(parse_table_name(name))

    @property
    def runs(self) -> Runs:
        """Runs of pipelines, and what was made from what."""
        return Runs(self._parts)

    def datafusion(self) -> "SessionContext":
        """A DataFusion session in which every table is found as `namespace.table`.

        All of them are read as they are now, whatever is committed meanwhile; a namespace inside
        another is quoted whole: `SELECT * FROM "sales.north".orders`.
        """
        self._may("read", "*")
        return session_of(self._parts)

    def spark(
        self, session: "SparkSession | None" = None, **options: Unpack[SparkOptions]
    ) -> Spark:
        """The lake's tables in Spark: in your session, or in one tuned for the lake.

        A session that lives in this process already is taken as it is. Needs `lakebed[spark]`.
        """
        self._may("read", "*")
        return Spark(self._parts, session_from(session, options))

    def transaction(self, **options: Unpack[CommitOptions]) -> Transaction:
        """Several tables, one commit: `with lake.transaction() as tx: tx.table(…).append(…)`."""
        self._may("write", "*")
        return Transaction(self._parts, check_options(options))

    def write_task(
        self,
        name: str,
        schema: object = None,
        *,
        where: str | None = None,
        **new: Unpack[TableOptions],
    ) -> WriteTask:
        """How other processes write rows: tasks pickle, and need the warehouse alone.

        With a schema the table may be one that the commit creates; `where` is that of an overwrite.
        """
        self._may("write", name)
        wanted, ref = parse_table_ref(name)
        if schema is not None and not self._parts.catalog.exists(wanted):
            self._may("create", name)
            return new_task(self._parts, parse_table_name(name), schema, NewTable(**new))
        head = self._parts.catalog.find(wanted)
        if ref is not None:
            head = self._parts.refs.on_branch(head, ref)
        return task_for(self._parts, head, where)

    def commit_written(
        self,
        task: WriteTask,
        written: Iterable[Written],
        *,
        overwrite: bool = False,
        where: str | None = None,
        partitions: bool = False,
        **options: Unpack[CommitOptions],
    ) -> Commit:
        """Append what calls of a task wrote, or put it in the place of rows: one commit."""
        listed = list(written)
        if task.create is not None:
            self._may("create", str(task.head.name))
            return commit_new(self._parts, task, listed, check_options(options))
        table = Table(self._parts, task.head, self._branch_of(task.head))
        rows = WrittenRows(listed, task.schema)
        if overwrite:
            return table.overwrite(rows, where=where, partitions=partitions, **options)
        return table.append(rows, **options)

    def discard_written(self, task: WriteTask, written: Iterable[Written]) -> None:
        """Delete what calls of a task wrote, unless it was committed after all."""
        self._may("write", str(task.head.name))
        discard(self._parts, task, written)

    def publish(self, table: str | None = None) -> Status:
        """Publish everything that waits, trying at once what failed before."""
        self._may("write", table or "*")
        if table is not None:
            ids = [self._parts.catalog.find(parse_table_name(table)).id]
        else:
            ids = list(dict.fromkeys(r.table_id for r in self._parts.outbox.all_pending()[0]))
        for table_id in ids:
            self._parts.drainer.drain(table_id, force=True)
        return self.status()

    def follow_publishing(
        self,
        stop: Event,
        *,
        every_s: float = 0.5,
        tell: Callable[[Turn], object] | None = None,
    ) -> None:
        """Publish what waits, of all tables, until `stop` is set; `tell` hears of each round.

        Several processes may do so at once. A database that is away is waited for.
        """
        self._may("write", "*")
        parts = self._parts
        Follower(parts.outbox, parts.drainer, parts.lag).run(
            stop, every_s, tell or (lambda _: None)
        )

    def status(self) -> Status:
        """What waits for publication, since when, and what is stopped."""
        self._may("read", "*")
        return status_of(self._parts)

    def check(self, table: str | None = None, *, repair: bool = False) -> Report:
        """Compare the rows with the data files and with both published formats."""
        self._may("admin" if repair else "read", table or "*")
        names = None if table is None else [parse_table_name(table)]
        parts = self._parts
        job = Check(parts.catalog, parts.outbox, parts.storage)
        report = job.run(names)
        if not repair or report.clean:
            return report
        services = (parts.catalog, parts.outbox, parts.storage, parts.committer, parts.drainer)
        repaired = Repair(*services).run(report)
        report = job.run(names)
        report.repaired = repaired
        return report

    def settings(self) -> list[Resolved]:
        """Every setting with its value and where it comes from."""
        self._may("read", "*")
        self._parts.settings.replace_lake(self._parts.catalog.settings())
        return self._parts.settings.all()

    def set_setting(self, name: str, value: object | None) -> None:
        """Keep a setting in the lake, for everybody who opens it; None takes it out."""
        self._may("admin", name)
        setting = find_setting(name)
        text = None if value is None else str(parse_setting(setting, value))
        self._parts.catalog.put_setting(name, text)
        self._parts.settings.replace_lake(self._parts.catalog.settings())

    def close(self) -> None:
        """Let background publication finish what it can, and give connections back."""
        self._parts.worker.close(_CLOSE_WAIT_S)
        self._parts.upkeep.close(_UPKEEP_WAIT_S)
        self._parts.engines.close()
        self._parts.holding.close()
        self._parts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _branch_of(self, head: TableHead) -> str | None:
        return None if head.line == MAIN_LINE else self._parts.refs.names(head).get(head.line)

    def _purge(self, head: TableHead) -> bool:
        """Delete a dropped table's files; what cannot be deleted now is told, and tried again."""
        error = self._parts.drainer.drain(head.id, force=True).error
        if error is not None:
            warn(f"{head.name} is dropped, but its files are not all deleted: {error.message}")
        return error is None

    def _may(self, action: Action, resource: str) -> None:
        require(self._parts.principal, action, resource)
