"""A session: statements one after the other, with a namespace in use and perhaps a transaction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, Unpack

from lakebed.api.options import CommitOptions
from lakebed.api.parts import Parts
from lakebed.api.sql import copying, ddl, dml, procedures, select, show
from lakebed.api.sql.altering import run_alter
from lakebed.api.sql.context import Context, Values
from lakebed.api.sql.host import Host
from lakebed.api.sql.result import Result
from lakebed.api.sql.wording import Wording
from lakebed.model.errors import (
    InvalidInput,
    NamespaceNotFound,
    NoChanges,
    SqlError,
    SqlParameters,
)
from lakebed.sql import statements as said
from lakebed.sql.parameters import bind_parameters, parameters_of
from lakebed.sql.parse import parse_script
from lakebed.sql.query import Select

Parameters = Sequence[object] | Mapping[str, object] | None
_Run = Callable[[Context, said.Statement, Values], Result]


class SqlSession:
    """One at a time: a session is not shared by threads. Closing it rolls back what is open."""

    def __init__(self, parts: Parts, lake: Host, *, allow_files: Sequence[str | Path] = ()) -> None:
        # A text is one folder: as a sequence of letters it would allow "/".
        given: object = [allow_files] if isinstance(allow_files, str | Path) else allow_files
        if not isinstance(given, Sequence) or not all(isinstance(f, str | Path) for f in given):
            raise InvalidInput("allow_files is no list of folders", hint="allow_files=['exports']")
        folders = [Path(folder) for folder in given if str(folder)]
        self._context = Context(parts, lake, folders)

    @property
    def namespace(self) -> str:
        """What USE chose; empty when nothing was."""
        return ".".join(self._context.namespace)

    @property
    def in_transaction(self) -> bool:
        return self._context.transaction is not None

    def sql(self, text: str, params: Parameters = None, **options: Unpack[CommitOptions]) -> Result:
        """Run every statement of the text; the answer is the last one's."""
        result = None
        for each in self.results(text, params, **options):
            if result is not None:
                result.close()
            result = each
        if result is None:
            raise SqlError("there is no statement", hint="write SELECT …")
        return result

    def results(
        self, text: str, params: Parameters = None, **options: Unpack[CommitOptions]
    ) -> Iterator[Result]:
        """The answers one by one. All of the text is understood before any of it runs."""
        statements = parse_script(text)
        values = [_values(s, params, alone=len(statements) == 1) for s in statements]
        _refuse_unused(statements, params)
        self._context.options = options
        alone = len(statements) == 1
        for number, (statement, bound) in enumerate(zip(statements, values, strict=True), 1):
            self._context.wording = Wording(text, 0 if alone else number)
            yield self._run(statement, bound)

    def close(self) -> None:
        transaction, self._context.transaction = self._context.transaction, None
        if transaction is not None:
            transaction.rollback()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, statement: said.Statement, values: Values) -> Result:
        match statement:
            case said.Begin() | said.Commit() | said.Rollback():
                return self._transact(statement)
            case said.Use(namespace):
                return self._use(namespace)
            case _:
                return _RUN[type(statement)](self._context, statement, values)

    def _transact(self, statement: said.Begin | said.Commit | said.Rollback) -> Result:
        context = self._context
        if isinstance(statement, said.Begin):
            if context.transaction is not None:
                raise SqlError("a transaction is open already", hint="COMMIT or ROLLBACK it first")
            context.transaction = context.lake.transaction(**context.options)
            return ddl.done("transaction begun")
        transaction, context.transaction = context.transaction, None
        if transaction is None:
            raise SqlError("there is no open transaction", hint="BEGIN one first")
        if isinstance(statement, said.Rollback):
            transaction.rollback()
            return ddl.done("rolled back")
        with suppress(NoChanges), transaction:  # one that only looked ends quietly
            pass
        return dml.committed_all(transaction.commits)

    def _use(self, namespace: tuple[str, ...]) -> Result:
        name = ".".join(namespace)
        if name not in self._context.lake.namespaces():
            raise NamespaceNotFound(
                f"there is no namespace {name}", hint="SHOW SCHEMAS lists them", namespace=name
            )
        self._context.namespace = namespace
        return ddl.done(f"names without a namespace are looked for in {name}")


def _values(statement: said.Statement, params: Parameters, *, alone: bool) -> Values:
    """Of a script, each statement takes the parameters that it names."""
    if alone or params is None:
        return bind_parameters(statement, params)
    if not isinstance(params, Mapping):
        raise SqlParameters(
            "several statements share one list of parameters",
            hint="use names: $id in the text and {'id': 5}",
        )
    names = parameters_of(statement)
    return bind_parameters(statement, {n: params[n] for n in names if n in params})


def _refuse_unused(statements: Sequence[said.Statement], params: Parameters) -> None:
    if not isinstance(params, Mapping):
        return
    known = {name for statement in statements for name in parameters_of(statement)}
    unused = sorted(str(name) for name in params if str(name) not in known)
    if unused:
        raise SqlParameters(
            f"no parameter {', '.join(unused)} in the text", hint="leave out what is not used"
        )


def _plain(run: Callable[..., Result]) -> _Run:
    """For statements that take no parameters."""
    return lambda context, statement, _: run(context, statement)


_RUN: Mapping[type, Callable[..., Result]] = {
    Select: select.run_select,
    said.Explain: select.run_explain,
    said.Insert: dml.run_insert,
    said.Update: dml.run_update,
    said.Delete: dml.run_delete,
    said.Merge: dml.run_merge,
    said.Truncate: dml.run_truncate,
    said.CopyFrom: copying.run_copy_from,
    said.CopyTo: copying.run_copy_to,
    said.CreateTable: ddl.run_create_table,
    said.AlterTable: run_alter,
    said.Call: procedures.run_call,
    said.DropTable: _plain(ddl.run_drop_table),
    said.CreateNamespace: _plain(ddl.run_create_namespace),
    said.DropNamespace: _plain(ddl.run_drop_namespace),
    said.CreateView: _plain(ddl.run_create_view),
    said.DropView: _plain(ddl.run_drop_view),
    said.CommentOn: _plain(ddl.run_comment),
    said.Show: _plain(show.run_show),
    said.ShowCreate: _plain(show.run_show_create),
    said.ShowProperties: _plain(show.run_show_properties),
    said.Describe: _plain(show.run_describe),
    said.DescribeNamespace: _plain(show.run_describe_namespace),
}
