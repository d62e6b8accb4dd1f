"""ALTER TABLE, as PostgreSQL, Spark and Iceberg users write it."""

from collections.abc import Callable

from lakebed.sql.alterations import (
    AddCheck,
    AddColumn,
    AddPartitionField,
    Alteration,
    DropColumn,
    DropConstraint,
    DropPartitionField,
    DropRef,
    MoveColumn,
    Position,
    RenameColumn,
    RenameTable,
    ReplacePartitionField,
    SetColumnComment,
    SetColumnDefault,
    SetColumnRequired,
    SetColumnType,
    SetPartitioning,
    SetPrimaryKey,
    SetProperties,
    SetSortOrder,
    SetTableComment,
    UnsetProperties,
)
from lakebed.sql.fragments import Fragments
from lakebed.sql.reader import Reader
from lakebed.sql.refs import read_create_ref
from lakebed.sql.statements import AlterTable
from lakebed.sql.tables import read_check, read_column_options, read_names, refused_constraint
from lakebed.sql.terms import read_sort_term, read_term
from lakebed.sql.types import read_type
from lakebed.sql.values import read_properties, read_property_name

Actions = list[Alteration]


def read_alter_table(reader: Reader) -> AlterTable:
    if_exists = reader.take("IF", "EXISTS")
    reader.take("ONLY")
    name = reader.table()
    fragments = Fragments(reader)
    actions: Actions = []
    while True:
        actions += _action(reader, fragments)
        if not reader.take(","):
            break
    reader.expect_end()
    return AlterTable(name, reader.span, tuple(actions), if_exists)


def _action(reader: Reader, fragments: Fragments) -> Actions:
    verb = reader.peek().upper
    readers: dict[str, Callable[[Reader, Fragments], Actions]] = {
        "ADD": _add,
        "DROP": _drop,
        "RENAME": _rename,
        "ALTER": _alter,
        "SET": _set,
        "UNSET": _unset,
        "REPLACE": _replace,
        "WRITE": _write,
        "CREATE": _create,
        "PARTITION": _partition,
        "PARTITIONED": _partition,
        "COMMENT": _comment,
    }
    if verb not in readers:
        raise reader.error("expected ADD, DROP, RENAME, ALTER, SET, UNSET, REPLACE or CREATE")
    reader.next()
    return readers[verb](reader, fragments)


def _add(reader: Reader, fragments: Fragments) -> Actions:
    if reader.take("PARTITION", "FIELD"):
        term = read_term(reader)
        return [AddPartitionField(term, reader.name() if reader.take("AS") else None)]
    if reader.sees("CONSTRAINT") or reader.sees("CHECK") or reader.sees("PRIMARY"):
        name = reader.name("the name of a constraint") if reader.take("CONSTRAINT") else None
        if reader.take("PRIMARY"):
            reader.expect("KEY")
            return [SetPrimaryKey(tuple(read_names(reader)))]
        if not reader.sees("CHECK"):
            raise refused_constraint(reader)
        check = read_check(reader, fragments, name)
        return [AddCheck(check.name, check.condition)]
    if reader.peek().upper in ("UNIQUE", "FOREIGN"):
        raise refused_constraint(reader)
    several = reader.take("COLUMNS")
    if not several:
        reader.take("COLUMN")
    if reader.sees("("):
        return list(reader.listed(lambda: _new_column(reader, fragments)))
    if several:
        return list(reader.separated(lambda: _new_column(reader, fragments)))
    return [_new_column(reader, fragments)]


def _new_column(reader: Reader, fragments: Fragments) -> AddColumn:
    if_not_exists = reader.take("IF", "NOT", "EXISTS")
    start = reader.start
    path = reader.path("the name of a column")
    kind = read_type(reader)
    options = read_column_options(reader, fragments)
    position = _position(reader)
    if options.primary or options.checks or options.generated is not None:
        raise reader.unsupported(
            "a column is added without PRIMARY KEY, CHECK and GENERATED",
            hint="add the constraint in a statement of its own",
            offset=start,
        )
    return AddColumn(
        path, kind, options.required, options.default, options.comment, position, if_not_exists
    )


def _position(reader: Reader) -> Position | None:
    if reader.take("FIRST"):
        return Position()
    return Position(reader.path("a column")[-1]) if reader.take("AFTER") else None


def _drop(reader: Reader, _: Fragments) -> Actions:
    if reader.take("PARTITION", "FIELD"):
        return [DropPartitionField(read_term(reader))]
    if reader.take("IDENTIFIER", "FIELDS"):
        reader.separated(lambda: reader.name("a column"))
        return [SetPrimaryKey(())]
    if reader.take("PRIMARY"):
        reader.expect("KEY")
        return [SetPrimaryKey(())]
    kind = reader.take_any("BRANCH", "TAG")
    if kind:
        if_exists = reader.take("IF", "EXISTS")
        return [DropRef(kind.lower(), reader.name("the name of a ref"), if_exists)]
    if reader.take("CONSTRAINT"):
        if_exists = reader.take("IF", "EXISTS")
        dropped: Actions = [DropConstraint(reader.name("the name of a constraint"), if_exists)]
    else:
        reader.take_any("COLUMN", "COLUMNS")
        if_exists = reader.take("IF", "EXISTS")
        paths = (
            reader.listed(lambda: reader.path("a column"))
            if reader.sees("(")
            else [reader.path("a column")]
        )
        dropped = [DropColumn(path, if_exists) for path in paths]
    reader.take_any("CASCADE", "RESTRICT")
    return dropped


def _rename(reader: Reader, _: Fragments) -> Actions:
    if reader.take("TO"):
        return [RenameTable(reader.table())]
    reader.take("COLUMN")
    path = reader.path("a column")
    reader.expect("TO")
    return [RenameColumn(path, reader.name("the new name"))]


def _alter(reader: Reader, fragments: Fragments) -> Actions:
    reader.take("COLUMN")
    path = reader.path("a column")
    position = _position(reader)
    if position is not None:
        return [MoveColumn(path, position)]
    if reader.take("SET", "NOT", "NULL"):
        return [SetColumnRequired(path, True)]
    if reader.take("DROP", "NOT", "NULL"):
        return [SetColumnRequired(path, False)]
    if reader.take("SET", "DEFAULT"):
        return [SetColumnDefault(path, fragments.expression(*reader.skip_until(",")))]
    if reader.take("DROP", "DEFAULT"):
        return [SetColumnDefault(path, None)]
    if reader.take("COMMENT"):
        return [SetColumnComment(path, reader.text("a comment in single quotes"))]
    if reader.take("TYPE") or reader.take("SET", "DATA", "TYPE"):
        changed = SetColumnType(path, read_type(reader))
        if reader.sees("USING"):
            raise reader.unsupported(
                "a type cannot be changed by an expression",
                hint="types are widened in place; for anything else add a column and UPDATE it",
            )
        return [changed]
    raise reader.error("expected TYPE, SET, DROP, COMMENT, FIRST or AFTER")


def _set(reader: Reader, _: Fragments) -> Actions:
    if reader.take("TBLPROPERTIES") or reader.take("PROPERTIES") or reader.sees("("):
        return [SetProperties(read_properties(reader))]
    if reader.take("IDENTIFIER", "FIELDS"):
        return [SetPrimaryKey(tuple(reader.separated(lambda: reader.name("a column"))))]
    if reader.take("PARTITIONED", "BY"):
        return [SetPartitioning(tuple(reader.listed(lambda: read_term(reader))))]
    if reader.take("SORTED", "BY"):
        return [SetSortOrder(tuple(reader.listed(lambda: read_sort_term(reader))))]
    raise reader.error(
        "expected TBLPROPERTIES", hint="SET TBLPROPERTIES ('a' = 'b'), SET IDENTIFIER FIELDS id"
    )


def _unset(reader: Reader, _: Fragments) -> Actions:
    if not reader.take("TBLPROPERTIES"):
        reader.expect("PROPERTIES")
    if_exists = reader.take("IF", "EXISTS")
    names = reader.listed(lambda: read_property_name(reader))
    return [UnsetProperties(tuple(names), if_exists)]


def _replace(reader: Reader, fragments: Fragments) -> Actions:
    if reader.peek().upper in ("BRANCH", "TAG"):
        return [read_create_ref(reader, fragments, or_replace=True)]
    reader.expect("PARTITION", "FIELD")
    old = read_term(reader)
    reader.expect("WITH")
    term = read_term(reader)
    return [ReplacePartitionField(old, term, reader.name() if reader.take("AS") else None)]


def _write(reader: Reader, _: Fragments) -> Actions:
    if reader.take("UNORDERED"):
        return [SetSortOrder(())]
    reader.take("LOCALLY")
    reader.expect("ORDERED", "BY")
    return [SetSortOrder(tuple(reader.separated(lambda: read_sort_term(reader))))]


def _create(reader: Reader, fragments: Fragments) -> Actions:
    or_replace = reader.take("OR", "REPLACE")
    return [read_create_ref(reader, fragments, or_replace=or_replace)]


def _partition(reader: Reader, _: Fragments) -> Actions:
    reader.expect("BY")
    return [SetPartitioning(tuple(reader.listed(lambda: read_term(reader))))]


def _comment(reader: Reader, _: Fragments) -> Actions:
    reader.take_any("=", "IS")
    return [SetTableComment(reader.text("a comment in single quotes"))]
