"""A plan as SQL over DuckDB's own Parquet reader, and what is left of the plan for ours.

Its reader finds columns by physical name. It gets files whose nested columns are as the table has
them now; a file says by the ids in its statistics which columns it holds.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lakebed.core.plan import Plan
from lakebed.engines.arrow.metadata import STORED
from lakebed.engines.duckdb.predicate import to_sql
from lakebed.engines.duckdb.types import literal, type_text
from lakebed.engines.duckdb.vectors import Gone, Keep, most_files, stride_of
from lakebed.model.expressions import columns as compared
from lakebed.model.files import LiveFile
from lakebed.model.ids import FieldId
from lakebed.model.quoting import quoted, text_literal
from lakebed.model.schema import Schema
from lakebed.model.types import (
    DecimalType,
    Field,
    FixedType,
    Primitive,
    is_scalar,
    walk,
)

# What the reader itself says of a row; a column of that name in a file would hide it.
_VIRTUAL = frozenset({"filename", "file_index", "file_row_number"})
_MOST_LISTED = 100  # paths in the text of a view, which is read again for every query
NO_COLUMNS = 'CAST(NULL AS BOOLEAN) AS "_"'  # SQL has no relation without columns


@dataclass(frozen=True, slots=True)
class Relation:
    """The SELECTs whose rows are the plan's, together with those of the files in `rest`."""

    selects: list[str]
    rest: list[int]  # numbers of files that we have to read
    firsts: tuple[tuple[str, ...], ...] = ()  # on which types depend: columns, then a first file


@dataclass(frozen=True, slots=True)
class _Shape:
    """What files must have in common to be read by one scan."""

    missing: frozenset[str]  # columns that they do not hold
    mapped: bool  # are types and names given to the reader?
    stride: int  # of their deleted rows; 0: none are
    stored: bool = False  # may they hold the lineage of their rows?


class Writer:
    """Writes the SELECTs of one plan; `keep` stores bits and numbers for the session."""

    def __init__(
        self,
        plan: Plan,
        metadata: tuple[str, ...],
        *,
        locate: Callable[[LiveFile], str | None],
        keep: Keep,
        keep_paths: Callable[[list[str]], str],
        stored: Callable[[LiveFile], bool] = lambda _: True,
        vectors: bool = True,
    ) -> None:
        """`locate` gives the path of a file that DuckDB may read; `vectors`: with deleted rows.

        `keep_paths` keeps a long list for the session, and gives the SQL that reads it.

        `stored` says whether a file may hold the lineage of its rows.
        """
        self._plan = plan
        self._metadata = metadata
        self._locate = locate
        self._keep = keep
        self._keep_paths = keep_paths
        self._stored = stored
        self._vectors = vectors
        used = () if plan.predicate is None else compared(plan.predicate)
        names = {*plan.columns, *(column.path[0] for column in used)}
        self._fields = [field for field in plan.schema.fields if field.name in names]
        self._ids = frozenset(field.id for field in plan.schema.walk())
        self._lineage = any(name in STORED for name in metadata)
        self._hides = any(f.physical.casefold() in _VIRTUAL for f in plan.schema.fields)
        self._widened = any(f.widened for f in self._fields)
        self._lacks: dict[frozenset[FieldId], frozenset[str] | None] = {}
        self._nested = {f.name: _leaf_ids(f) for f in self._fields if not is_scalar(f.type)}

    def write(self, *, mapped: bool = False) -> Relation:
        """`mapped`: give types and names to the reader for every file."""
        groups: dict[_Shape, list[tuple[int, str]]] = {}
        rest = []
        for index, live in enumerate(self._plan.files):
            path = self._locate(live)
            shape = self._shape(live, mapped) if path is not None else None
            if path is None or shape is None:
                rest.append(index)
            else:
                groups.setdefault(shape, []).append((index, path))
        scans = [
            (shape, files)
            for shape, members in groups.items()
            for files in _parts(members, most_files(shape.stride) if shape.stride else None)
        ]
        firsts = tuple(
            (*self._inners(shape).values(), self._source(shape, files[:1]))
            for shape, files in scans
        )
        return Relation([self._select(shape, files) for shape, files in scans], rest, firsts)

    def _shape(self, live: LiveFile, mapped: bool) -> _Shape | None:
        """None: the file has to be read by us."""
        deleted = live.id in self._plan.deleted
        held = frozenset(live.file.stats.keys())
        if held not in self._lacks:  # files of a table are much alike
            self._lacks[held] = self._lacking(held)
        missing = self._lacks[held]
        if missing is None or (deleted and not self._vectors):
            return None
        looks = deleted or bool(self._metadata)
        # Only a scan that is told its columns gives NULL for one that a file does not hold; but
        # then a join's values leave no row out while it reads.
        stored = self._lineage and self._stored(live)
        mapped = (
            mapped
            or stored
            or self._widened
            # A column that was dropped may have had the name of a virtual one.
            or (looks and (self._hides or not held <= self._ids))
        )
        return _Shape(missing, mapped, stride_of(live) if deleted else 0, stored)

    def _lacking(self, held: frozenset[FieldId]) -> frozenset[str] | None:
        """The columns that a file with these ids does not hold; None: we have to read it."""
        if not held:
            return None
        missing = set()
        for field in self._fields:
            presence = self._presence(field, held)
            if presence is None or (not presence and field.required and not _has_default(field)):
                return None
            if not presence:
                missing.add(field.name)
        return frozenset(missing)

    def _presence(self, field: Field, held: frozenset[FieldId]) -> bool | None:
        """Does the file hold the column as the table has it? None: in another form."""
        if is_scalar(field.type):
            return field.id in held
        leaves = self._nested[field.name]
        if leaves is None or not held <= self._ids:
            return None
        return True if leaves <= held else (None if leaves & held else False)

    def _select(self, shape: _Shape, files: Sequence[tuple[int, str]]) -> str:
        inner = self._inners(shape)
        listed = [f"{inner[name]} AS {quoted(name)}" for name in self._plan.columns]
        lives = [self._plan.files[index] for index, _ in files]
        indexes = [index for index, _ in files]
        listed += [
            f"{self._about(name, indexes, lives, stored=shape.stored)} AS {quoted(name)}"
            for name in self._metadata
        ]
        conditions = []
        if shape.stride:
            positions = tuple(self._plan.deleted[live.id] for live in lives)
            conditions.append(Gone(positions, shape.stride).condition(self._keep))
        if self._plan.predicate is not None:
            conditions.append(to_sql(self._plan.predicate, inner))
        where = f" WHERE ({') AND ('.join(conditions)})" if conditions else ""
        source = self._source(shape, files)
        return f"SELECT {', '.join(listed) or NO_COLUMNS} FROM {source}{where}"

    def _source(self, shape: _Shape, files: Sequence[tuple[int, str]]) -> str:
        paths = [path for _, path in files]
        listed = f"[{', '.join(map(text_literal, paths))}]"
        if len(paths) > _MOST_LISTED:
            listed = self._keep_paths(paths)
        options = f", schema = {self._map(shape)}" if shape.mapped else ""
        return f"read_parquet({listed}, hive_partitioning = false{options})"

    def _inners(self, shape: _Shape) -> dict[str, str]:
        """What stands for each column in the scan."""
        return {field.name: self._inner(field, n, shape) for n, field in enumerate(self._fields)}

    def _inner(self, field: Field, number: int, shape: _Shape) -> str:
        if field.name not in shape.missing:
            return f"c{number}" if shape.mapped else quoted(field.physical)
        if field.initial_default is None:
            return f"CAST(NULL AS {type_text(field.type)})"
        assert isinstance(field.type, Primitive | DecimalType | FixedType)
        return literal(field.initial_default, field.type)

    def _map(self, shape: _Shape) -> str:
        entries = [
            _entry(field.physical, f"c{number}", type_text(field.type))
            for number, field in enumerate(self._fields)
            if field.name not in shape.missing
        ]
        entries += [_entry(name, name, "BIGINT") for name in STORED if shape.stored]
        # A scan must have a column, and there is none of this name.
        return f"MAP {{{', '.join(entries or [_entry('_', 'c', 'BOOLEAN')])}}}"

    def _about(self, name: str, indexes: list[int], lives: list[LiveFile], *, stored: bool) -> str:
        if name == "_pos":
            return "file_row_number"
        if name == "_file":
            if indexes == list(range(indexes[0], indexes[0] + len(indexes))):
                return f"CAST(file_index + {indexes[0]} AS INTEGER)"
            return _looked_up([str(index) for index in indexes], "INTEGER")
        is_id = name == "_row_id"
        numbers = [live.first_row_id if is_id else live.sequence_number for live in lives]
        derived = _looked_up(["NULL" if n is None else str(n) for n in numbers], "BIGINT")
        if is_id:
            derived = f"{derived} + file_row_number"
        return f"coalesce({quoted(name)}, {derived})" if stored else derived


def columns_of(plan: Plan, metadata: Sequence[str]) -> list[tuple[str, str]]:
    """Names and types of the relation's columns."""
    by_name = {field.name: field for field in plan.schema.fields}
    types = {"_file": "INTEGER"}
    return [
        *((name, type_text(by_name[name].type)) for name in plan.columns),
        *((name, types.get(name, "BIGINT")) for name in metadata),
    ]


def empty_select(columns: Sequence[tuple[str, str]]) -> str:
    listed = [f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in columns]
    return f"SELECT {', '.join(listed) or NO_COLUMNS} WHERE FALSE"


def rest_select(source: str, plan: Plan, metadata: Sequence[str]) -> str:
    """Rows of our own reader, in the types of DuckDB's."""
    listed = [*cast_columns(plan.schema, plan.columns), *(quoted(name) for name in metadata)]
    return f"SELECT {', '.join(listed) or NO_COLUMNS} FROM {quoted(source)}"


def cast_columns(schema: Schema, columns: Sequence[str]) -> list[str]:
    """A select list over Arrow's columns: uuids are plain bytes there."""
    by_name = {field.name: field for field in schema.fields}
    listed = []
    for name in columns:
        column = quoted(name)
        if any(f.type == Primitive("uuid") for f in walk((by_name[name],))):
            column = f"CAST({column} AS {type_text(by_name[name].type)})"
        listed.append(f"{column} AS {quoted(name)}")
    return listed


def _parts(members: list[tuple[int, str]], most: int | None) -> Iterator[Sequence[tuple[int, str]]]:
    step = most or len(members)
    for start in range(0, len(members), step):
        yield members[start : start + step]


def _entry(physical: str, name: str, kind: str) -> str:
    return (
        f"{text_literal(physical)}: {{'name': {text_literal(name)}, "
        f"'type': {text_literal(kind)}, 'default_value': NULL}}"
    )


def _looked_up(values: list[str], kind: str) -> str:
    listed = f"CAST([{', '.join(values)}] AS {kind}[])"
    return f"list_extract({listed}, CAST(file_index AS BIGINT) + 1)"


def _has_default(field: Field) -> bool:
    return field.initial_default is not None


def _leaf_ids(field: Field) -> frozenset[FieldId] | None:
    """The ids of a nested column's leaves; None if its files may differ from the table inside."""
    below = [f for f in walk((field,)) if f is not field]
    if field.widened or any(f.name != f.physical or f.widened for f in below):
        return None
    return frozenset(f.id for f in below if is_scalar(f.type))
