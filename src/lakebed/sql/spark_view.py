"""Views of the lake as queries in Spark's SQL: only those that surely mean the same there."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from lakebed.model.errors import SqlUnsupported
from lakebed.model.types import DecimalType, Primitive, StructType, Type
from lakebed.model.views import View
from lakebed.sql.dialect import BRANCH, TooHard, TypedDialect
from lakebed.sql.spark import NUMBER, TRUTH, Kinds, Otherwise, Path, kind_of, path_of
from lakebed.sql.syntax import STUMBLES

_DIALECT = TypedDialect(version="2.0")
_PARTS = {"expressions", "from_", "joins", "where", "group", "distinct", "order"}
_NAMES = ("this", "db", "catalog")  # of a table, the last part first
_MOST_PARTS = len(_NAMES)
_SIDES = ("", "LEFT", "RIGHT", "FULL")
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Neg, exp.Abs)
# Results that differ in their type or their last digit.
_INEXACT = (exp.Div, exp.IntDiv, exp.Round, exp.Floor, exp.Ceil, exp.Cast)
_WHOLE = (Primitive("int"), Primitive("long"))
_FLOATS = (Primitive("float"), Primitive("double"))
Column = tuple[str, Type | str]  # with its type; of what is computed only the kind is known
Columns = Callable[[Path], Sequence[Column]]


@dataclass(frozen=True, slots=True)
class SparkView:
    query: str
    columns: tuple[Column, ...]


def view_in_spark(view: View, columns_of: Columns) -> SparkView:
    """`columns_of` tells of the tables and views that the view names, by their full names."""
    try:
        (tree,) = _DIALECT.parse(view.sql)
        if not isinstance(tree, exp.Select):
            raise Otherwise("it is more than one SELECT")
        found = _Query(view, columns_of).checked(tree)
        sql = tree.sql("spark", identify=True, comments=False, unsupported_level=ErrorLevel.RAISE)
    except (Otherwise, SqlglotError, RecursionError, TooHard, *STUMBLES) as error:
        reason = f": {error}" if isinstance(error, Otherwise) and str(error) else ""
        raise SqlUnsupported(
            f"view {view.name} may mean something else in Spark's SQL{reason}",
            hint="lake.sql() reads it; or name its tables here",
        ) from error
    if view.columns:
        names = [name for name, _ in view.columns]
        quoted = ", ".join("`" + name.replace("`", "``") + "`" for name in names)
        sql = f"SELECT * FROM ({sql}) AS `renamed`({quoted})"
        found = [(name, kind) for name, (_, kind) in zip(names, found, strict=True)]
    return SparkView(sql, tuple(found))


class _Query:
    def __init__(self, view: View, columns_of: Columns) -> None:
        self._view = view
        self._columns_of = columns_of
        self._scope: dict[str, Mapping[str, Type | str]] = {}  # by alias, in order
        self._kinds = Kinds(self._kind_at)

    def checked(self, tree: exp.Select) -> list[Column]:
        """The columns; the tree has the full names of all tables then."""
        _refuse_parts(tree)
        self._take(tree.args["from_"].this)
        for join in tree.args.get("joins") or ():
            self._join(join)
        if (where := tree.args.get("where")) is not None:
            self._condition(where.this)
        if (group := tree.args.get("group")) is not None:
            _refuse_group(group)
            for each in group.expressions:
                self._type_at(path_of(each))
        tree.set("order", None)  # the rows of a view have none
        return [column for each in tree.expressions for column in self._shown(each)]

    def _take(self, node: exp.Expr) -> None:
        if not isinstance(node, exp.Table) or BRANCH in node.meta:
            raise Otherwise("it reads more than tables and views")
        said = {key for key, value in node.args.items() if value}
        if said - {"this", "db", "catalog", "alias"}:
            raise Otherwise("it names versions, or more than tables")
        parts = tuple(part.name for part in node.parts)
        full = parts if len(parts) > 1 else (*self._view.namespace, *parts)
        alias = node.alias or parts[-1]
        if alias.casefold() in self._scope:
            raise Otherwise(f"it reads {alias} twice")
        self._scope[alias.casefold()] = dict(self._columns_of(full))
        named = [exp.to_identifier(part) for part in reversed(full)]
        if len(named) > _MOST_PARTS:
            raise Otherwise(f"{'.'.join(full)} has more than {_MOST_PARTS} parts")
        alias_node = exp.TableAlias(this=exp.to_identifier(alias))
        node.replace(exp.Table(**dict(zip(_NAMES, named, strict=False)), alias=alias_node))

    def _join(self, join: exp.Join) -> None:
        said = {key for key, value in join.args.items() if value}
        if said - {"this", "on", "side", "kind"} or join.side not in _SIDES:
            raise Otherwise("a join is neither inner nor outer with ON")
        if join.kind not in ("", "INNER", "OUTER", "CROSS") or (
            "on" not in said and join.kind != "CROSS"
        ):
            raise Otherwise("a join has no ON")
        self._take(join.this)
        if "on" in said:
            self._condition(join.args["on"])

    def _condition(self, node: exp.Expr) -> None:
        self._refuse_inexact(node)
        if self._kind(node) != TRUTH:
            raise Otherwise(f"{node.sql('duckdb')} is no condition")

    def _kind(self, node: exp.Expr) -> str:
        try:
            return self._kinds.of(node)
        except Otherwise as error:
            raise (error if str(error) else Otherwise(node.sql("duckdb"))) from None

    def _shown(self, node: exp.Expr) -> Iterator[Column]:
        if isinstance(node, exp.Star):
            _refuse_stars(node)
            for columns in self._scope.values():
                yield from columns.items()
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            _refuse_stars(node.this)
            yield from self._scope_of(node.table).items()
        elif isinstance(node, exp.Alias):
            yield node.alias, self._value(node.this)
        elif isinstance(node, exp.Column | exp.Dot):
            yield path_of(node)[-1], self._value(node)
        else:
            raise Otherwise(f"{node.sql('duckdb')} has no name: write … AS name")

    def _value(self, node: exp.Expr) -> Type | str:
        if isinstance(node, exp.Column | exp.Dot):
            return self._type_at(path_of(node))
        if isinstance(node, exp.AggFunc):
            return self._aggregate(node)
        self._refuse_inexact(node)
        return self._kind(node)

    def _aggregate(self, node: exp.AggFunc) -> Type | str:
        given = node.this
        if isinstance(node, exp.Count):
            if isinstance(given, exp.Distinct) and len(given.expressions) == 1:
                (given,) = given.expressions
            if not isinstance(given, exp.Star):
                self._type_at(path_of(given))
            return Primitive("long")
        kind = self._type_at(path_of(given))
        if isinstance(node, exp.Min | exp.Max):
            self._kind(given)  # of what can be compared
            return kind
        if isinstance(node, exp.Sum) and (kind in (*_WHOLE, *_FLOATS) or _is_decimal(kind)):
            return NUMBER
        raise Otherwise(f"{node.sql('duckdb')}")

    def _refuse_inexact(self, node: exp.Expr) -> None:
        for each in node.walk():
            if isinstance(each, _INEXACT):
                raise Otherwise(f"{each.sql('duckdb')}")
            if isinstance(each, _ARITHMETIC):
                self._refuse_widths(each)

    def _refuse_widths(self, node: exp.Expr) -> None:
        """Where small numbers and decimals end is told in two ways."""
        kinds = [self._type_at(path_of(c)) for c in node.find_all(exp.Column)]
        floats = any(kind in _FLOATS for kind in kinds)
        whole = all(n.is_int for n in node.find_all(exp.Literal) if not n.is_string)
        if not all(kind in (*_WHOLE, *_FLOATS) for kind in kinds) or not (whole or floats):
            raise Otherwise(f"{node.sql('duckdb')}")

    def _kind_at(self, path: Path) -> str:
        kind = self._type_at(path)
        return kind if isinstance(kind, str) else kind_of(kind)

    def _type_at(self, path: Path) -> Type | str:
        """By the alias of a table, or alone when one table has such a column."""
        folded = tuple(part.casefold() for part in path)
        if len(folded) > 1 and folded[0] in self._scope:
            return _below(self._scope[folded[0]], folded[1:])
        holders = [
            columns
            for columns in self._scope.values()
            if folded[0] in {name.casefold() for name in columns}
        ]
        if len(holders) != 1:
            raise Otherwise(f"{'.'.join(path)} is no column, or one of several")
        return _below(holders[0], folded)

    def _scope_of(self, alias: str) -> Mapping[str, Type | str]:
        if alias.casefold() not in self._scope:
            raise Otherwise(f"{alias} is no table")
        return self._scope[alias.casefold()]


def _below(columns: Mapping[str, Type | str], folded: Path) -> Type | str:
    found: Type | str | None = {n.casefold(): kind for n, kind in columns.items()}.get(folded[0])
    for name in folded[1:]:
        members = found.fields if isinstance(found, StructType) else ()
        found = {f.name.casefold(): f.type for f in members}.get(name)
    if found is None:
        raise Otherwise(f"{'.'.join(folded)} is no column")
    return found


def _is_decimal(kind: Type | str) -> bool:
    return isinstance(kind, DecimalType)


def _refuse_parts(tree: exp.Select) -> None:
    said = {key for key, value in tree.args.items() if value}
    if said - _PARTS or "from_" not in said:
        raise Otherwise(f"{_listed(said - _PARTS) or 'it reads no table'}")
    distinct = tree.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise Otherwise("DISTINCT ON")


def _refuse_group(group: exp.Group) -> None:
    if {key for key, value in group.args.items() if value} - {"expressions"}:
        raise Otherwise("GROUP BY has more than columns")


def _refuse_stars(star: exp.Expr) -> None:
    if any(star.args.values()):
        raise Otherwise("* has more behind it")


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(sorted(part.strip("_").upper() for part in parts))
