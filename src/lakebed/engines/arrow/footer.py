"""What a data file's footer says, without reading its rows."""

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.model.errors import DataCorrupt
from lakebed.storage.base import Storage


def count_rows(storage: Storage, path: str) -> int:
    with storage.open_input(path) as source:
        try:
            return int(pq.read_metadata(source).num_rows)
        except (pa.ArrowException, OSError) as error:
            raise DataCorrupt(
                f"{path} is no whole Parquet file: {error}",
                hint="restore the file from a backup",
                path=path,
            ) from error
