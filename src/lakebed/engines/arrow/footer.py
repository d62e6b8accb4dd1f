"""What a data file's footer says, without reading its rows."""

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.model.errors import DataCorrupt
from lakebed.storage.base import Storage


def count_rows(storage: Storage, path: str) -> int:
    return int(_footer(storage, path).num_rows)


def leaf_names(storage: Storage, path: str) -> frozenset[str]:
    """Physical names of the columns, and of what is inside of nested ones."""
    return frozenset(_footer(storage, path).schema.names)


def _footer(storage: Storage, path: str) -> pq.FileMetaData:
    with storage.open_input(path) as source:
        try:
            return pq.read_metadata(source)
        except (pa.ArrowException, OSError) as error:
            raise DataCorrupt(
                f"{path} is no whole Parquet file: {error}",
                hint="restore the file from a backup",
                path=path,
            ) from error
