"""Pure: does a file that loses rows get a deletion vector, or are its other rows written anew?"""

from dataclasses import dataclass

from lakebed.model.files import LiveFile


@dataclass(frozen=True, slots=True)
class Policy:
    copy_on_write: bool  # by the settings of the operation, or because vectors are not allowed
    rewrite_above: float  # the part of a file's rows that may be gone
    rewrite_max_bytes: int

    def rewrites(self, live: LiveFile, gone: int) -> bool:
        """`gone` counts all rows of the file that are gone afterwards."""
        if self.copy_on_write:
            return True
        mostly = gone > self.rewrite_above * live.file.record_count
        return mostly and live.file.size_bytes <= self.rewrite_max_bytes
