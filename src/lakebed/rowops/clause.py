"""The clauses of a MERGE, in the order they are tried: the first whose condition is TRUE acts."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class When(Enum):
    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    BY_SOURCE = "not matched by source"


@dataclass(frozen=True, slots=True)
class Clause:
    """`action` is update, replace, delete or insert; `values` None means all columns, by name.

    A row that is replaced keeps its row id, and columns without a value get their default, or NULL.
    """

    when: When
    action: str
    condition: str | None = None
    values: Mapping[str, str] | None = None

    def __str__(self) -> str:
        """As errors and digests call it."""
        condition = f" AND {self.condition}" if self.condition else ""
        values = "" if self.values is None else f" {sorted(self.values.items())}"
        return f"WHEN {self.when.value}{condition} THEN {self.action}{values}"


@dataclass(frozen=True, slots=True)
class Aliases:
    """What expressions call the table and the source."""

    target: str
    source: str
