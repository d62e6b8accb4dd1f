"""Is a step's function plain: does calling it only build a query, so that it may be called twice?

Told from its text, and in doubt it is not.
"""

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType

# Of frames and columns: what runs a job, writes, or gives other columns for other rows.
# fmt: off
_ACTS = frozenset((
    "approxQuantile", "cache", "checkpoint", "collect", "corr", "count", "cov",
    "createGlobalTempView", "createOrReplaceGlobalTempView", "createOrReplaceTempView",
    "createTempView", "crosstab", "describe", "explain", "first", "foreach", "foreachPartition",
    "freqItems", "head", "inputFiles", "isEmpty", "localCheckpoint", "mergeInto", "observe",
    "pandas_api", "persist", "pivot", "plot", "printSchema", "rdd", "registerTempTable", "show",
    "sparkSession", "summary", "tail", "take", "toArrow", "toJSON", "toLocalIterator", "toPandas",
    "unpersist", "write", "writeStream", "writeTo",
))
_GROUPS = ("cube", "groupBy", "groupby", "rollup")  # what they count is a query, and no job
_MODULES = ("pyspark", "datetime", "decimal", "functools", "itertools", "math", "operator", "re")
_SESSIONS = ("SparkContext", "SparkSession")
_BUILTINS = frozenset((
    "abs", "all", "any", "bool", "dict", "enumerate", "filter", "float", "frozenset", "int",
    "len", "list", "map", "max", "min", "range", "repr", "reversed", "round", "set", "sorted",
    "str", "sum", "tuple", "zip",
))
# fmt: on
_REFUSED = (
    ast.AsyncFor,
    ast.Await,
    ast.ClassDef,
    ast.Delete,
    ast.Global,
    ast.Import,
    ast.ImportFrom,
    ast.Nonlocal,
    ast.Try,
    ast.With,
    ast.Yield,
    ast.YieldFrom,
)
_DEPTH = 5


def is_plain(function: Callable[..., object], depth: int = _DEPTH) -> bool:
    """Functions that it calls are looked into; what cannot be looked into is not plain."""
    if depth == 0 or not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        return False
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, ValueError, SyntaxError):
        return False
    if not isinstance(tree, ast.FunctionDef):
        return False  # the text of a lambda is a line with who knows what
    text = _Text(frozenset(_bound(tree)), _names_outside(function), _parents(tree), depth)
    return all(text.is_plain(node) for part in tree.body for node in ast.walk(part))


@dataclass(frozen=True, slots=True)
class _Text:
    """The text of one function, with what its names mean."""

    local: frozenset[str]
    outside: dict[str, object]
    parents: dict[ast.AST, ast.AST]
    depth: int

    def is_plain(self, node: ast.AST) -> bool:
        match node:
            case ast.Attribute(ctx=ast.Load()):
                return self._is_plain_attribute(node)
            case ast.Attribute() | ast.Subscript(ctx=ast.Store()):
                return False  # something else is changed
            case ast.Name(id=name, ctx=ast.Load()) if name not in self.local:
                return self._is_plain_name(node)
            case _:
                return not isinstance(node, _REFUSED)

    def _is_plain_attribute(self, node: ast.Attribute) -> bool:
        base = node.value
        if isinstance(base, ast.Name) and base.id not in self.local:
            thing = self.outside.get(base.id)
            return _is_harmless(thing) or isinstance(thing, str | tuple)
        if node.attr == "count":
            called = base.func if isinstance(base, ast.Call) else None
            return isinstance(called, ast.Attribute) and called.attr in _GROUPS
        return node.attr not in _ACTS and not node.attr.startswith("_")

    def _is_plain_name(self, node: ast.Name) -> bool:
        """A constant, something without effects, or a function that is plain itself."""
        if node.id not in self.outside:
            return node.id in _BUILTINS or _is_exception(node.id)
        thing = self.outside[node.id]
        if thing is None or isinstance(thing, str | int | float | bytes | tuple | frozenset):
            return True
        if isinstance(thing, list | dict | set):
            return self._is_only_read(node)
        if _is_harmless(thing):
            return True
        return isinstance(thing, FunctionType) and is_plain(thing, self.depth - 1)

    def _is_only_read(self, node: ast.Name) -> bool:
        """Does a method of a frame get it? What else gets it could change it."""
        parent = self.parents[node]
        if isinstance(parent, ast.keyword):
            parent = self.parents[parent]
        if isinstance(parent, ast.Call):
            return isinstance(parent.func, ast.Attribute)
        return isinstance(parent, ast.Starred | ast.comprehension | ast.Compare | ast.Subscript)


def _is_harmless(thing: object) -> bool:
    """A module, class or function of one that has no effects."""
    home = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", "")
    named = str(getattr(thing, "__name__", ""))
    return str(home).partition(".")[0] in _MODULES and named not in _SESSIONS


def _is_exception(name: str) -> bool:
    thing = getattr(builtins, name, None)
    return isinstance(thing, type) and issubclass(thing, Exception)


def _names_outside(function: FunctionType) -> dict[str, object]:
    found = dict(function.__globals__)
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            found[name] = object()  # not there yet: nobody knows what it will be
    return found


def _bound(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name):
                yield name
            case _:
                pass


def _parents(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
