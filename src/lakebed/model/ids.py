"""Identifiers that must not be mixed up."""

from typing import NewType

TableId = NewType("TableId", int)
FileId = NewType("FileId", int)
FieldId = NewType("FieldId", int)
SchemaId = NewType("SchemaId", int)
SpecId = NewType("SpecId", int)
SortOrderId = NewType("SortOrderId", int)
StateId = NewType("StateId", int)
SnapshotId = NewType("SnapshotId", int)
VectorId = NewType("VectorId", int)
Line = NewType("Line", int)
Version = NewType("Version", int)

MAIN_LINE = Line(0)
