"""Names of columns that would hide what readers say about rows are refused."""

import pytest

from lakebed.model.errors import InvalidName
from lakebed.model.names import check_column_name


@pytest.mark.parametrize(
    "name", ["_file", "_pos", "_row_id", "_last_updated_sequence_number", "_Row_ID"]
)
def test_names_of_metadata_columns_are_refused(name: str) -> None:
    with pytest.raises(InvalidName, match="reserved") as caught:
        check_column_name(name)

    assert caught.value.hint


def test_names_that_only_look_alike_are_allowed() -> None:
    check_column_name("_rows")
    check_column_name("pos")
