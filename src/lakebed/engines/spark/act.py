"""What a clause of a MERGE does, as Spark's side needs to know it."""

from collections.abc import Mapping
from dataclasses import dataclass

from lakebed.model.ids import FieldId


@dataclass(frozen=True, slots=True)
class Act:
    """A clause; `values` None means all columns by name, and `number` counts from 1."""

    number: int
    action: str  # update, replace, delete or insert
    condition: str | None
    values: Mapping[FieldId, str] | None
    what: str  # as errors call it

    @property
    def writes(self) -> bool:
        return self.action != "delete"
