"""CALL: what the lake can do beside statements. Names may be written with or without `system.`"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakebed.api.sql.context import Context, Values
from lakebed.api.sql.dml import committed
from lakebed.api.sql.result import Result
from lakebed.model.errors import SqlError
from lakebed.model.names import TableName
from lakebed.security.policy import require
from lakebed.sql.query import Parameter
from lakebed.sql.statements import Call, Value

Given = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Procedure:
    """`arguments` in the order in which they may be given without names."""

    arguments: tuple[str, ...]
    required: int  # so many of them must be given
    run: Callable[[Context, Given], Result]


def run_call(context: Context, statement: Call, values: Values) -> Result:
    name = statement.procedure[-1].lower()
    procedure = PROCEDURES.get(name)
    if procedure is None or statement.procedure[:-1] not in ((), ("system",)):
        raise SqlError(
            f"there is no procedure {'.'.join(statement.procedure)}",
            hint=f"there are: {', '.join(sorted(PROCEDURES))}",
            line=statement.span.line,
        )
    if len(statement.positional) > len(procedure.arguments):
        raise SqlError(
            f"{name} takes {len(procedure.arguments)} arguments",
            hint=f"they are: {', '.join(procedure.arguments)}",
        )
    given = dict(zip(procedure.arguments, statement.positional, strict=False))
    given |= dict(statement.named)
    unknown = set(given) - set(procedure.arguments)
    if unknown:
        raise SqlError(
            f"{name} has no argument {min(unknown)}",
            hint=f"it takes: {', '.join(procedure.arguments)}",
        )
    context.outside(f"CALL {name}")
    missing = [a for a in procedure.arguments[: procedure.required] if given.get(a) is None]
    if missing:
        raise SqlError(
            f"{name} needs {' and '.join(missing)}",
            hint=f"CALL {name}({', '.join(f'{a} => …' for a in procedure.arguments)})",
        )
    return procedure.run(context, {key: _value(v, values) for key, v in given.items()})


def _value(value: Value, values: Values) -> object:
    return values[value.name] if isinstance(value, Parameter) else value


def _table_name(context: Context, given: Given) -> str:
    name = given["table"]
    if not isinstance(name, str):
        raise SqlError(f"{name!r} is no table", hint="write its name in quotes: 'ns.table'")
    *namespace, last = name.split(".")
    return context.text(TableName(tuple(namespace), last))


def _restore(context: Context, given: Given) -> Result:
    table = context.lake.table(_table_name(context, given))
    version, moment, ref = (given.get(name) for name in ("version", "timestamp", "ref"))
    if isinstance(version, str) and ref is None:
        version, ref = None, version  # as VERSION AS OF 'tag'
    return committed(
        table.restore(
            version=_version(version),
            timestamp=None if moment is None else str(moment),
            ref=None if ref is None else str(ref),
            **context.options,
        )
    )


def _version(given: object) -> int | None:
    if given is not None and type(given) is not int:
        raise SqlError(
            f"{given!r} is no version", hint="write a number, timestamp => '…' or ref => '…'"
        )
    return given


def _fast_forward(context: Context, given: Given) -> Result:
    table = context.lake.table(_table_name(context, given))
    return committed(table.fast_forward("main", to=str(given["branch"]), **context.options))


def _publish(context: Context, given: Given) -> Result:
    name = _table_name(context, given) if given.get("table") is not None else None
    status = context.lake.publish(name)
    return Result(pa.table({"waiting": pa.array([len(status.lags)], pa.int64())}))


def _build_index(context: Context, given: Given) -> Result:
    name = _table_name(context, given)
    require(context.parts.principal, "write", name)
    files = context.parts.planner.build_index(context.lake.table(name).id)
    return Result(pa.table({"files": pa.array([files], pa.int64())}))


PROCEDURES = {
    "restore": Procedure(("table", "version", "timestamp", "ref"), 1, _restore),
    "fast_forward": Procedure(("table", "branch"), 2, _fast_forward),
    "publish": Procedure(("table",), 0, _publish),
    "build_index": Procedure(("table",), 1, _build_index),
}
