"""What a step reads, as values: tables whole or by their changes, files, databases, any frame."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakebed.model.errors import PipelineInvalid
from lakebed.model.names import parse_table_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_POSTGRES = "org.postgresql.Driver"
CHANGES = "changes:"
FORMATS = ("csv", "json", "parquet", "orc", "text")


@dataclass(frozen=True, slots=True)
class Current:
    """The whole table; the state of this very run where a step of it makes the table."""

    table: str

    @property
    def key(self) -> str:
        """What a cursor calls this input."""
        return f"current:{self.table}"


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed since the step's last successful run."""

    table: str
    feed: bool = False
    op: str = "op"

    @property
    def key(self) -> str:
        return f"{CHANGES}{self.table}"


@dataclass(frozen=True, slots=True)
class Files:
    """Files of a folder, each of them once."""

    pattern: str
    format: str
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    path_column: str | None = None

    @property
    def key(self) -> str:
        return f"files:{self.pattern}"


@dataclass(frozen=True, slots=True)
class Jdbc:
    """A table or query of another database, read whole at every run."""

    url: str
    options: Mapping[str, str]

    @property
    def key(self) -> str:
        return f"jdbc:{self.options.get('dbtable') or self.options.get('query', '')}"


@dataclass(frozen=True, slots=True)
class Source:
    """Any frame: made by a function of the session at every run."""

    make: Callable[["SparkSession"], "DataFrame"]

    @property
    def key(self) -> str:
        return f"source:{getattr(self.make, '__name__', 'source')}"


TableInput = Current | Changes
Input = Current | Changes | Files | Jdbc | Source


# These return Any, so that a step may say what it gets: `def daily(orders: DataFrame = current(…))`
def current(table: str) -> Any:
    """The whole table, as this run will leave it when one of its steps makes it."""
    return Current(_table_name(table))


def changes(table: str, *, feed: bool = False, op: str = "op") -> Any:
    """Net changes since this step's last successful run: one row per primary key, `op` in a column.

    With `feed` every change counts: insert, update_before, update_after and delete, with `_version`
    and `_time`. The first run gets every row, as an insert.
    """
    return Changes(_table_name(table), feed, op)


def files(
    pattern: str,
    *,
    format: str | None = None,
    schema: str | None = None,
    path_column: str | None = None,
    **options: object,
) -> Any:
    """New files under a pattern such as `in/*.csv`: each file is read by one successful run.

    `schema` is a Spark schema text; `path_column` adds the file's name; other options are those of
    Spark's reader (`header=True`).
    """
    given: object = pattern
    if not isinstance(given, str) or not given:
        raise PipelineInvalid(f"{pattern!r} is no pattern of files", hint='files("in/*.csv")')
    known = format or pattern.rpartition(".")[2].casefold()
    if known not in FORMATS:
        raise PipelineInvalid(
            f"files({pattern!r}) does not say what the files are",
            hint=f"give format=, one of: {', '.join(FORMATS)}",
        )
    texts = {name: _option(value) for name, value in options.items()}
    return Files(pattern, known, schema, texts, path_column)


def jdbc(url: str, *, table: str | None = None, query: str | None = None, **options: object) -> Any:
    """A table or query of another database, read whole at every run.

    PostgreSQL's driver comes with `lakebed spark jars --set jdbc`; the jar of another is given to
    Spark (`--conf spark.jars=…`), and its class here (`driver=`).
    """
    if (table is None) == (query is None):
        raise PipelineInvalid("jdbc() reads a table or a query", hint="give table= or query=")
    what = {"dbtable": table} if table is not None else {"query": str(query)}
    texts = {name: _option(value) for name, value in options.items()}
    known = {"driver": _POSTGRES} if url.startswith("jdbc:postgresql:") else {}
    return Jdbc(url, {**known, **texts, **what})


def source(make: Callable[["SparkSession"], "DataFrame"]) -> Any:
    """Any frame: `source(lambda spark: spark.range(10))`; it counts as new at every run."""
    if not callable(make):
        raise PipelineInvalid("source() takes a function of the session", hint="lambda spark: …")
    return Source(make)


def _option(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _table_name(table: str) -> str:
    return str(parse_table_name(table))
