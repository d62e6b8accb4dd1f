"""What a change of rows did, in numbers; these are the names in a commit's summary."""

from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Copied rows are unchanged ones whose file was written anew, which counts as rewritten.

    Scanned files are those that were opened to find the rows; a vectored file only got a deletion
    vector.
    """

    inserted_rows: int = 0
    updated_rows: int = 0
    deleted_rows: int = 0
    copied_rows: int = 0
    scanned_files: int = 0
    rewritten_files: int = 0
    vectored_files: int = 0

    @property
    def changes(self) -> int:
        """Rows that are not what they were."""
        return self.inserted_rows + self.updated_rows + self.deleted_rows

    def __add__(self, other: "RowCounts") -> "RowCounts":
        return RowCounts(*(getattr(self, n) + getattr(other, n) for n in COUNT_NAMES))

    def to_summary(self) -> dict[str, int]:
        return asdict(self)


COUNT_NAMES = tuple(f.name for f in fields(RowCounts))
NO_ROWS = RowCounts()
