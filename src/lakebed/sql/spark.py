"""Conditions in Spark's SQL: only those that surely mean the same there."""

from collections.abc import Callable, Sequence
from functools import partial

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from lakebed.model.schema import Schema
from lakebed.model.types import DecimalType, Primitive, Type
from lakebed.sql.dialect import TooHard, TypedDialect
from lakebed.sql.syntax import STUMBLES

_DIALECT = TypedDialect(version="2.0")
NUMBER, _TEXT, TRUTH, _DAY, _MOMENT, _NULL = "number", "text", "truth", "day", "moment", "null"
_NUMBERS = ("byte", "short", "int", "long", "float", "double")
_KINDS = {
    **dict.fromkeys(_NUMBERS, NUMBER),
    "string": _TEXT,
    "boolean": TRUTH,
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
    exp.DType.TINYINT: NUMBER,
    exp.DType.SMALLINT: NUMBER,
    exp.DType.INT: NUMBER,
    exp.DType.BIGINT: NUMBER,
    exp.DType.DOUBLE: NUMBER,
    exp.DType.DECIMAL: NUMBER,
    exp.DType.DATE: _DAY,
}
# What a node takes and gives.
_SIGNATURES: tuple[tuple[tuple[type[exp.Expr], ...], str, str], ...] = (
    ((exp.And, exp.Or, exp.Not), TRUTH, TRUTH),
    ((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg), NUMBER, NUMBER),
    ((exp.Abs, exp.Floor, exp.Ceil, exp.Round), NUMBER, NUMBER),
    ((exp.Length,), _TEXT, NUMBER),
    ((exp.Lower, exp.Upper, exp.Trim, exp.DPipe), _TEXT, _TEXT),
    ((exp.StartsWith, exp.EndsWith, exp.Contains, exp.Like, exp.ILike), _TEXT, TRUTH),
    ((exp.Year, exp.Month, exp.Day), _DAY, NUMBER),
)
_ONE_ARGUMENT = (exp.Trim, exp.Floor, exp.Ceil, exp.Length)
_SAME_KIND = (exp.Paren, exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least)


Path = tuple[str, ...]


class Otherwise(Exception):
    """Spark has no such words, or understands them in another way."""


def to_spark(sql: str, schema: Schema) -> str | None:
    """The condition for Spark, or None when it might mean something else there."""
    try:
        (tree,) = _DIALECT.parse(sql)
        if tree is None or Kinds(partial(_kind_in, schema)).of(tree) != TRUTH:
            return None
        return tree.sql("spark", identify=True, comments=False, unsupported_level=ErrorLevel.RAISE)
    except (Otherwise, SqlglotError, RecursionError, TooHard, *STUMBLES):
        return None


class Kinds:
    """What an expression gives; `kind_at` tells of columns, or says that it cannot."""

    def __init__(self, kind_at: Callable[[Path], str]) -> None:
        self._kind_at = kind_at

    def of(self, node: exp.Expr) -> str:
        match node:
            case exp.Literal():
                return _literal(node)
            case exp.Boolean():
                return TRUTH
            case exp.Null():
                return _NULL
            case exp.Column() | exp.Dot():
                return self._kind_at(path_of(node))
            case exp.Is():
                self.of(node.this)
                if not isinstance(node.expression, exp.Null | exp.Boolean):
                    raise Otherwise
                return TRUTH
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
            return TRUTH
        if isinstance(node, _SAME_KIND):
            if isinstance(node, exp.Greatest | exp.Least) and len(arguments) < 2:
                raise Otherwise
            return self._same(arguments)
        for kinds, takes, gives in _SIGNATURES:
            if isinstance(node, kinds):
                if isinstance(node, _ONE_ARGUMENT) and len(arguments) > 1:
                    raise Otherwise
                if isinstance(node, exp.Like | exp.ILike):
                    _check_pattern(node)
                if any(self.of(each) not in (takes, _NULL) for each in arguments):
                    raise Otherwise
                return gives
        raise Otherwise

    def _same(self, nodes: Sequence[exp.Expr]) -> str:
        """One kind of all; text in quotes takes the kind of what stands beside it."""
        plain = [n for n in nodes if not (isinstance(n, exp.Literal) and n.is_string)]
        kinds = {self.of(n) for n in plain} - {_NULL}
        if len(plain) < len(nodes) and not kinds & {_DAY, _MOMENT}:
            kinds.add(_TEXT)
        if len(kinds) > 1:
            raise Otherwise
        return kinds.pop() if kinds else _NULL

    def _case(self, node: exp.Case) -> str:
        if node.this is not None:
            raise Otherwise
        branches = node.args["ifs"]
        if any(self.of(each.this) not in (TRUTH, _NULL) for each in branches):
            raise Otherwise
        last = [node.args["default"]] if node.args.get("default") is not None else []
        return self._same([*(each.args["true"] for each in branches), *last])

    def _cast(self, node: exp.Cast) -> str:
        kind = _CASTS.get(node.to.this)
        given = self.of(node.this)
        exact = given == kind == NUMBER or (given == _TEXT and kind == _DAY)
        if kind is None or isinstance(node, exp.TryCast) or not exact:
            raise Otherwise
        return kind


def _kind_in(schema: Schema, path: Path) -> str:
    field = schema.find(path)
    if field is None:
        raise Otherwise
    return kind_of(field.type)


def _literal(node: exp.Literal) -> str:
    return _TEXT if node.is_string else NUMBER


def _check_pattern(node: exp.Expr) -> None:
    """A backslash escapes there, and here it does not."""
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or "\\" in pattern.name:
        raise Otherwise


def kind_of(kind: Type) -> str:
    if isinstance(kind, DecimalType):
        return NUMBER
    found = _KINDS.get(kind.name) if isinstance(kind, Primitive) else None
    if found is None:
        raise Otherwise
    return found


def path_of(node: exp.Expr) -> Path:
    if isinstance(node, exp.Dot):
        return (*path_of(node.this), node.expression.name)
    if not isinstance(node, exp.Column):
        raise Otherwise
    return tuple(part.name for part in node.parts)
