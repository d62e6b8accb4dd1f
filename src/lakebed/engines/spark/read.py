"""A plan as a DataFrame over Spark's own Parquet reader: columns by their physical names, deleted
rows left out by their positions, and only the plan's files opened."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as st

from lakebed.core.plan import Plan
from lakebed.engines.arrow.metadata import METADATA, STORED
from lakebed.engines.spark import bitmap
from lakebed.engines.spark import files as about
from lakebed.engines.spark.columns import Shape
from lakebed.engines.spark.origins import without_lines
from lakebed.engines.spark.predicate import named, to_column
from lakebed.engines.spark.types import check_types, file_schema, to_spark
from lakebed.model.errors import DataCorrupt, ObjectMissing, UnsupportedFeature
from lakebed.model.expressions import columns as compared
from lakebed.model.files import ColumnStats, LiveFile
from lakebed.model.ids import FieldId
from lakebed.model.schema import Schema
from lakebed.model.types import Field, Primitive, StructType, walk
from lakebed.storage.base import Storage

_FLOATS = (Primitive("float"), Primitive("double"))
_POSITION = "_pos"  # no column of a table has this name
_OPTIONS = {
    "recursiveFileLookup": "true",  # partition values are in the files, never in folder names
    "__globPaths__": "false",
    "mergeSchema": "false",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}


def read(
    session: SparkSession, plan: Plan, storage: Storage, *, metadata: tuple[str, ...] = ()
) -> DataFrame:
    """The plan's rows and columns, then those about rows (see `engines.arrow.metadata`)."""
    scan = _Scan(session, plan, storage, metadata)
    with without_lines():
        frames = [scan.frame(group) for group in scan.groups()]
    if not frames:
        return session.createDataFrame([], scan.empty_schema())
    return reduce(DataFrame.union, frames)


@dataclass(frozen=True, slots=True)
class _Group:
    """Files that one scan can read; `round` parts files of one name."""

    filled: frozenset[FieldId]
    losing: bool
    round: int


@dataclass(frozen=True, slots=True)
class _Scan:
    session: SparkSession
    plan: Plan
    storage: Storage
    metadata: tuple[str, ...]

    def groups(self) -> list[tuple[_Group, list[int]]]:
        """Numbers of the plan's files by what they need."""
        check_types(self._fields())
        found: dict[_Group, list[int]] = {}
        seen: dict[str, int] = {}
        for number, live in enumerate(self.plan.files):
            name = about.file_name(live)
            _refuse_hidden(name, live)
            seen[name] = seen.get(name, -1) + 1
            losing = live.id in self.plan.deleted
            looks = losing or bool(self.metadata)
            group = _Group(self._filled(live), losing, seen[name] if looks else 0)
            found.setdefault(group, []).append(number)
        return list(found.items())

    def frame(self, members: tuple[_Group, list[int]]) -> DataFrame:
        group, numbers = members
        files = [self.plan.files[n] for n in numbers]
        shape = Shape(group.filled, self._misleading())
        rows = self._load(numbers)
        if not group.losing and not self.metadata:
            return self._plain(rows, shape)
        listed = [shape.shown(field) for field in self._fields()]
        listed += [named(name).alias(name) for name in self._stored()]
        place = rows.metadataColumn("_metadata")
        key, size = self._free("file"), self._free("size")
        listed += [place.getField("row_index").alias(_POSITION)]
        listed += [place.getField("file_name").alias(key), place.getField("file_size").alias(size)]
        found = rows.select(*listed)
        losing = [(f, self.plan.deleted[f.id]) for f in files if group.losing]
        if about.can_choose(files) and bitmap.can_hold(losing):
            known = about.chosen(list(zip(numbers, files, strict=True)), key)
            found = self._matching(found)  # first: fewer rows are looked up
            if losing:
                found = bitmap.left(
                    self.session, found, losing, position=_POSITION, name=key, size=size
                )
        else:
            found, known = self._joined(found, numbers, key)
            if losing:
                found = found.where(about.is_there(known[about.THERE], named(_POSITION)))
            found = self._matching(found)
        asked = [self._about(name, known).alias(name) for name in self.metadata]
        return found.select(*map(named, self.plan.columns), *asked)

    def _joined(
        self, rows: DataFrame, numbers: Sequence[int], key: str
    ) -> tuple[DataFrame, dict[str, Column]]:
        names = [self._free(f"about_{name}") for name in about.COLUMNS]
        files = [(n, self.plan.files[n]) for n in numbers]
        deleted = self.plan.deleted
        known = about.about_files(self.session, [(n, f, deleted.get(f.id)) for n, f in files])
        joined = rows.join(known.toDF(*names), named(key) == named(names[0]), "inner")
        return joined, dict(zip(about.COLUMNS, map(named, names), strict=True))

    def _plain(self, rows: DataFrame, shape: Shape) -> DataFrame:
        """Nothing is selected that is there already: every column takes Spark a while."""
        fields = self._fields()
        if not all(map(shape.keeps, fields)):
            rows = rows.select(*map(shape.shown, fields))
        rows = self._matching(rows)
        if [field.name for field in fields] == list(self.plan.columns):
            return rows
        return rows.select(*map(named, self.plan.columns))

    def empty_schema(self) -> st.StructType:
        check_types(self._fields())
        by_name = {field.name: field for field in self.plan.schema.fields}
        fields = tuple(by_name[name] for name in self.plan.columns)
        schema = to_spark(Schema(self.plan.schema.id, fields))
        for name in self.metadata:
            kind = st.IntegerType() if name == "_file" else st.LongType()
            schema = schema.add(name, kind)
        return schema

    def _fields(self) -> list[Field]:
        """Columns that are asked for or compared."""
        used = () if self.plan.predicate is None else compared(self.plan.predicate)
        names = {*self.plan.columns, *(column.path[0] for column in used)}
        return [field for field in self.plan.schema.fields if field.name in names]

    def _load(self, numbers: Sequence[int]) -> DataFrame:
        schema = file_schema(self._fields())
        for name in self._stored():
            schema = schema.add(name, st.LongType())
        root, files = self.plan.root, self.plan.files
        paths = [self.storage.location(f"{root}/{files[n].file.path}") for n in numbers]
        reader = self.session.read.schema(schema).options(**_OPTIONS)
        try:
            return reader.parquet(*paths)
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            raise ObjectMissing(
                f"a data file is missing: {str(error).splitlines()[0]}",
                hint="`lakebed check` names every file a table has lost",
            ) from error

    def _matching(self, rows: DataFrame) -> DataFrame:
        return rows if self.plan.predicate is None else rows.where(to_column(self.plan.predicate))

    def _stored(self) -> list[str]:
        """Columns of lineage that files may hold."""
        return [name for name in STORED if name in self.metadata]

    def _about(self, name: str, known: Mapping[str, Column]) -> Column:
        match name:
            case "_file":
                return known[about.NUMBER]
            case "_pos":
                return named(_POSITION)
            case "_row_id":
                return F.coalesce(named(name), known[about.FIRST_ROW_ID] + named(_POSITION))
            case _:
                assert name in METADATA, name
                return F.coalesce(named(name), known[about.SEQUENCE])

    def _free(self, name: str) -> str:
        """A name that no column of the table has."""
        taken = {field.name.casefold() for field in self.plan.schema.fields}
        while name in taken:
            name += "_"
        return name

    def _filled(self, live: LiveFile) -> frozenset[FieldId]:
        """Fields with a default that the file lacks; what else it lacks, Spark takes for NULL."""
        held = live.file.stats.keys()
        lacking = set()
        for field in self._fields():
            for inner in walk((field,)):
                if inner.initial_default is not None and inner.id not in held:
                    lacking.add(inner.id)
                elif inner is field and _must_hold(inner) and inner.id not in held:
                    raise DataCorrupt(
                        f"data file {live.file.path!r} has no column {inner.physical!r}, which is"
                        " required",
                        hint="`lakebed check` names every damaged file",
                        path=live.file.path,
                    )
        return frozenset(lacking)

    def _misleading(self) -> frozenset[FieldId]:
        """Floats by whose statistics and dictionaries Spark would leave out rows that match."""
        return frozenset(
            field.id
            for field in _members(self._fields())
            if field.type in _FLOATS
            and any(_misleads(f.file.stats.get(field.id)) for f in self.plan.files)
        )


def _members(fields: Sequence[Field]) -> Iterator[Field]:
    for field in fields:
        yield field
        if isinstance(field.type, StructType):
            yield from _members(field.type.fields)


def _misleads(stats: ColumnStats | None) -> bool:
    """May there be a NaN, or a -0.0?"""
    if stats is None or stats.null_count == stats.value_count:
        return False
    low, up = stats.lower, stats.upper
    if stats.nan_count != 0 or not isinstance(low, float) or not isinstance(up, float):
        return True
    return low <= 0.0 <= up


def _must_hold(field: Field) -> bool:
    return field.required and not isinstance(field.type, StructType) and _is_leaf(field)


def _is_leaf(field: Field) -> bool:
    return len(list(walk((field,)))) == 1


def _refuse_hidden(name: str, live: LiveFile) -> None:
    if name.startswith((".", "_")):
        raise UnsupportedFeature(
            f"Spark does not read data file {live.file.path!r}: it takes such names for hidden",
            hint="rewrite the table's files, or read it with reader='iceberg'",
            path=live.file.path,
        )
