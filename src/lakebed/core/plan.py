"""A plan: which files of which version to read, and how. One plan feeds every engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebed.model.expressions import Predicate
from lakebed.model.files import LiveFile
from lakebed.model.ids import FileId, Version
from lakebed.model.partitioning import PartitionSpec
from lakebed.model.schema import Schema
from lakebed.model.vectors import Positions


@dataclass(frozen=True, slots=True)
class Plan:
    root: str  # the table's root, relative to the warehouse
    version: Version
    schema: Schema  # the schema to read as; files are matched to it by field id
    columns: tuple[str, ...]  # top-level columns to return, in this order
    predicate: Predicate | None  # bound; engines apply it to every row
    files: tuple[LiveFile, ...]
    pruned: int  # files left out because no row of theirs can match
    deleted: Mapping[FileId, Positions] = field(default_factory=dict)  # of files with a vector
    # by id, for engines that leave out more files themselves
    specs: Mapping[int, PartitionSpec] = field(default_factory=dict)
