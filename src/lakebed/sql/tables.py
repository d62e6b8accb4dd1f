"""CREATE TABLE, with columns as PostgreSQL and Spark users write them, and DROP TABLE."""

from dataclasses import dataclass, field

from lakebed.model.types import Type
from lakebed.sql.fragments import Fragments
from lakebed.sql.query import Expression
from lakebed.sql.reader import Reader
from lakebed.sql.statements import Check, ColumnDefinition, CreateTable, DropTable
from lakebed.sql.terms import read_sort_term, read_term
from lakebed.sql.types import read_type
from lakebed.sql.values import read_properties

_CONSTRAINTS = ("CONSTRAINT", "PRIMARY", "CHECK", "UNIQUE", "FOREIGN", "EXCLUDE")
# Where the expression of a DEFAULT ends.
_COLUMN_WORDS = (
    ",",
    "NOT",
    "NULL",
    "COMMENT",
    "PRIMARY",
    "CHECK",
    "UNIQUE",
    "REFERENCES",
    "CONSTRAINT",
    "GENERATED",
    "COLLATE",
    "DEFAULT",
    "FIRST",
    "AFTER",
)


@dataclass(slots=True)
class _Definition:
    """What the parentheses behind CREATE TABLE hold."""

    columns: list[ColumnDefinition] = field(default_factory=list)
    key: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)


@dataclass(slots=True)
class ColumnOptions:
    """What may follow the type of a column."""

    required: bool = False
    default: Expression | None = None
    generated: Expression | None = None
    comment: str | None = None
    primary: bool = False
    checks: list[Check] = field(default_factory=list)


def read_create_table(reader: Reader, *, or_replace: bool) -> CreateTable:
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    name = reader.table()
    fragments = Fragments(reader)
    made = _Definition()
    like = None
    if reader.take("LIKE"):
        like = reader.table()
    elif reader.sees("(") and reader.peek(1).upper not in ("SELECT", "WITH", "FROM"):
        reader.listed(lambda: _item(reader, fragments, made))
    options = _table_options(reader, made)
    select = None
    if reader.take("AS") or reader.peek().upper in ("SELECT", "WITH", "FROM", "VALUES", "("):
        select = fragments.select(reader.start, reader.end)
        reader.at = len(reader.tokens)
    reader.expect_end()
    if made.columns and select is not None:
        raise reader.unsupported(
            "CREATE TABLE AS takes its columns from the query", hint="cast them in the query"
        )
    if not made.columns and select is None and like is None:
        raise reader.error("expected columns in parentheses, or AS and a query")
    return CreateTable(
        name,
        reader.span,
        tuple(made.columns),
        tuple(made.key),
        tuple(made.checks),
        tuple(options.partition_by),
        tuple(options.sort_by),
        tuple(options.properties),
        options.comment,
        options.provider,
        if_not_exists,
        or_replace,
        select,
        like,
    )


def _item(reader: Reader, fragments: Fragments, made: _Definition) -> None:
    if reader.peek().upper in _CONSTRAINTS:
        _constraint(reader, fragments, made)
        return
    start = reader.start
    name = reader.name("the name of a column")
    reader.take(":")
    kind = read_type(reader)
    options = read_column_options(reader, fragments)
    made.columns.append(
        ColumnDefinition(
            name,
            kind,
            reader.span_from(start),
            options.required,
            options.default,
            options.generated,
            options.comment,
        )
    )
    made.checks += options.checks
    if options.primary:
        _set_key(reader, made, [name], start)


def _constraint(reader: Reader, fragments: Fragments, made: _Definition) -> None:
    start = reader.start
    name = reader.name("the name of a constraint") if reader.take("CONSTRAINT") else None
    if reader.take("PRIMARY"):
        reader.expect("KEY")
        _set_key(reader, made, read_names(reader), start)
    elif reader.sees("CHECK"):
        made.checks.append(read_check(reader, fragments, name))
    else:
        raise refused_constraint(reader)
    reader.take("NOT", "ENFORCED")


def _set_key(reader: Reader, made: _Definition, names: list[str], start: int) -> None:
    if made.key:
        raise reader.error(
            "the table has two primary keys",
            hint="name all columns of the key in one PRIMARY KEY (a, b)",
            offset=start,
        )
    made.key = names


def refused_constraint(reader: Reader) -> Exception:
    return reader.unsupported(
        f"{reader.peek().text.upper()} constraints are not supported",
        hint="PRIMARY KEY, CHECK and NOT NULL are; a check across rows belongs into a query",
    )


def read_check(reader: Reader, fragments: Fragments, name: str | None) -> Check:
    reader.expect("CHECK", "(")
    condition = fragments.expression(*reader.skip_until())
    reader.expect(")")
    return Check(name, condition)


def read_names(reader: Reader) -> list[str]:
    return reader.listed(lambda: reader.name("a column"))


def read_column_options(reader: Reader, fragments: Fragments) -> ColumnOptions:
    options = ColumnOptions()
    while _column_option(reader, fragments, options):
        pass
    return options


def _column_option(reader: Reader, fragments: Fragments, options: ColumnOptions) -> bool:
    name = reader.name("the name of a constraint") if reader.take("CONSTRAINT") else None
    if reader.take("NOT", "NULL"):
        options.required = True
    elif reader.take("NULL"):
        options.required = False
    elif options.default is None and reader.take("DEFAULT"):
        options.default = fragments.expression(*reader.skip_until(*_COLUMN_WORDS))
    elif reader.take("COMMENT"):
        options.comment = reader.text("a comment in single quotes")
    elif reader.take("PRIMARY", "KEY"):
        options.primary = options.required = True
    elif reader.sees("CHECK"):
        options.checks.append(read_check(reader, fragments, name))
    elif reader.sees("GENERATED") or (reader.sees("AS") and reader.peek(1).text == "("):
        options.generated = _generated(reader, fragments)
    elif reader.peek().upper in ("UNIQUE", "REFERENCES", "COLLATE", "AUTO_INCREMENT"):
        raise refused_constraint(reader)
    else:
        return False
    return True


def _generated(reader: Reader, fragments: Fragments) -> Expression:
    if reader.take("GENERATED"):
        reader.take("ALWAYS")
        reader.take("BY", "DEFAULT")
    reader.expect("AS")
    if reader.sees("IDENTITY"):
        raise reader.unsupported(
            "identity columns are not supported: Iceberg has none",
            hint="number the rows with row_number() when they are written",
        )
    reader.expect("(")
    value = fragments.expression(*reader.skip_until())
    reader.expect(")")
    reader.take_any("STORED", "VIRTUAL")
    return value


@dataclass(slots=True)
class _Options:
    partition_by: list[str] = field(default_factory=list)
    sort_by: list[str] = field(default_factory=list)
    properties: list[tuple[str, str]] = field(default_factory=list)
    comment: str | None = None
    provider: str | None = None


def _table_options(reader: Reader, made: _Definition) -> _Options:
    options = _Options()
    while _table_option(reader, made, options):
        pass
    return options


def _table_option(reader: Reader, made: _Definition, options: _Options) -> bool:
    if reader.take("USING"):
        options.provider = reader.name("a format").lower()
    elif reader.take("PARTITIONED", "BY") or reader.take("PARTITION", "BY"):
        options.partition_by += reader.listed(lambda: _partition_term(reader, made))
    elif reader.take("SORTED", "BY") or reader.take("ORDER", "BY"):
        if reader.sees("("):
            options.sort_by += reader.listed(lambda: read_sort_term(reader))
        else:
            options.sort_by += reader.separated(lambda: read_sort_term(reader))
    elif reader.take("TBLPROPERTIES") or reader.take("OPTIONS") or reader.take("WITH"):
        options.properties += read_properties(reader)
    elif reader.take("COMMENT"):
        reader.take("=")
        options.comment = reader.text("a comment in single quotes")
    elif reader.sees("LOCATION") or reader.sees("CLUSTER") or reader.sees("CLUSTERED"):
        raise reader.unsupported(
            f"{reader.peek().upper} is not supported",
            hint="the lake chooses where a table lives; use SORTED BY (…) to order its rows",
        )
    else:
        return False
    return True


def _partition_term(reader: Reader, made: _Definition) -> str:
    """A term, or a column with its type as Hive has it: then it is added to the columns."""
    following = reader.peek(1)
    if reader.peek().kind in ("word", "quoted") and following.kind == "word":
        start, name = reader.start, reader.name()
        kind: Type = read_type(reader)
        comment = reader.text() if reader.take("COMMENT") else None
        made.columns.append(ColumnDefinition(name, kind, reader.span_from(start), comment=comment))
        return name
    return read_term(reader)


def read_drop_table(reader: Reader) -> DropTable:
    if_exists = reader.take("IF", "EXISTS")
    name = reader.table()
    purge = reader.take("PURGE")
    reader.take("RESTRICT")
    reader.expect_end()
    return DropTable(name, reader.span, if_exists, purge)
