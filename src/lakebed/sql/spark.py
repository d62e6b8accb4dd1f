"""Conditions in Spark's SQL: only those that surely mean the same there."""

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from lakebed.model.schema import Schema
from lakebed.model.types import DecimalType, Primitive, Type
from lakebed.sql.dialect import TooHard, TypedDialect
from lakebed.sql.syntax import STUMBLES

_DIALECT = TypedDialect(version="2.0")
_NUMBER, _TEXT, _TRUTH, _DAY, _MOMENT, _NULL = "number", "text", "truth", "day", "moment", "null"
_NUMBERS = ("byte", "short", "int", "long", "float", "double")
_KINDS = {
    **dict.fromkeys(_NUMBERS, _NUMBER),
    "string": _TEXT,
    "boolean": _TRUTH,
    "date": _DAY,
    "timestamp": _MOMENT,
    "timestamp_ntz": _MOMENT,
}
_COMPARISONS = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Between,
    exp.In,
)
_CASTS = {
    exp.DType.TINYINT: _NUMBER,
    exp.DType.SMALLINT: _NUMBER,
    exp.DType.INT: _NUMBER,
    exp.DType.BIGINT: _NUMBER,
    exp.DType.DOUBLE: _NUMBER,
    exp.DType.DECIMAL: _NUMBER,
    exp.DType.DATE: _DAY,
}
# What a node takes and gives.
_SIGNATURES: tuple[tuple[tuple[type[exp.Expr], ...], str, str], ...] = (
    ((exp.And, exp.Or, exp.Not), _TRUTH, _TRUTH),
    ((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg), _NUMBER, _NUMBER),
    ((exp.Abs, exp.Floor, exp.Ceil, exp.Round), _NUMBER, _NUMBER),
    ((exp.Length,), _TEXT, _NUMBER),
    ((exp.Lower, exp.Upper, exp.Trim, exp.DPipe), _TEXT, _TEXT),
    ((exp.StartsWith, exp.EndsWith, exp.Contains, exp.Like, exp.ILike), _TEXT, _TRUTH),
    ((exp.Year, exp.Month, exp.Day), _DAY, _NUMBER),
)
_ONE_ARGUMENT = (exp.Trim, exp.Floor, exp.Ceil, exp.Length)
_SAME_KIND = (exp.Paren, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least)


class _Otherwise(Exception):
    """Spark has no such words, or understands them in another way."""


def to_spark(sql: str, schema: Schema) -> str | None:
    """The condition for Spark, or None when it might mean something else there."""
    try:
        (tree,) = _DIALECT.parse(sql)
        if tree is None or _Kinds(schema).of(tree) != _TRUTH:
            return None
        return tree.sql("spark", identify=True, comments=False, unsupported_level=ErrorLevel.RAISE)
    except (_Otherwise, SqlglotError, RecursionError, TooHard, *STUMBLES):
        return None


class _Kinds:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def of(self, node: exp.Expr) -> str:
        match node:
            case exp.Literal():
                return _literal(node)
            case exp.Boolean():
                return _TRUTH
            case exp.Null():
                return _NULL
            case exp.Column() | exp.Dot():
                return self._column(node)
            case exp.Is():
                self.of(node.this)
                if not isinstance(node.expression, exp.Null | exp.Boolean):
                    raise _Otherwise
                return _TRUTH
            case exp.Case():
                return self._case(node)
            case exp.Cast():
                return self._cast(node)
            case _:
                return self._of_many(node)

    def _of_many(self, node: exp.Expr) -> str:
        arguments = list(node.iter_expressions())
        if isinstance(node, _COMPARISONS):
            self._same(arguments)
            return _TRUTH
        if isinstance(node, _SAME_KIND):
            if isinstance(node, exp.Greatest | exp.Least) and len(arguments) < 2:
                raise _Otherwise
            return self._same(arguments)
        for kinds, takes, gives in _SIGNATURES:
            if isinstance(node, kinds):
                if isinstance(node, _ONE_ARGUMENT) and len(arguments) > 1:
                    raise _Otherwise
                if isinstance(node, exp.Like | exp.ILike):
                    _check_pattern(node)
                if any(self.of(each) not in (takes, _NULL) for each in arguments):
                    raise _Otherwise
                return gives
        raise _Otherwise

    def _same(self, nodes: Sequence[exp.Expr]) -> str:
        """One kind of all; text in quotes takes the kind of what stands beside it."""
        plain = [n for n in nodes if not (isinstance(n, exp.Literal) and n.is_string)]
        kinds = {self.of(n) for n in plain} - {_NULL}
        if len(plain) < len(nodes) and not kinds & {_DAY, _MOMENT}:
            kinds.add(_TEXT)
        if len(kinds) > 1:
            raise _Otherwise
        return kinds.pop() if kinds else _NULL

    def _column(self, node: exp.Expr) -> str:
        field = self._schema.find(_path(node))
        if field is None:
            raise _Otherwise
        return _kind_of(field.type)

    def _case(self, node: exp.Case) -> str:
        if node.this is not None:
            raise _Otherwise
        branches = node.args["ifs"]
        if any(self.of(each.this) not in (_TRUTH, _NULL) for each in branches):
            raise _Otherwise
        last = [node.args["default"]] if node.args.get("default") is not None else []
        return self._same([*(each.args["true"] for each in branches), *last])

    def _cast(self, node: exp.Cast) -> str:
        kind = _CASTS.get(node.to.this)
        given = self.of(node.this)
        exact = given == kind == _NUMBER or (given == _TEXT and kind == _DAY)
        if kind is None or isinstance(node, exp.TryCast) or not exact:
            raise _Otherwise
        return kind


def _literal(node: exp.Literal) -> str:
    return _TEXT if node.is_string else _NUMBER


def _check_pattern(node: exp.Expr) -> None:
    """A backslash escapes there, and here it does not."""
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or "\\" in pattern.name:
        raise _Otherwise


def _kind_of(kind: Type) -> str:
    if isinstance(kind, DecimalType):
        return _NUMBER
    found = _KINDS.get(kind.name) if isinstance(kind, Primitive) else None
    if found is None:
        raise _Otherwise
    return found


def _path(node: exp.Expr) -> tuple[str, ...]:
    if isinstance(node, exp.Dot):
        return (*_path(node.this), node.expression.name)
    if not isinstance(node, exp.Column):
        raise _Otherwise
    return tuple(part.name for part in node.parts)
