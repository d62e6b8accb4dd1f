"""Names: what columns and tables may be called, and how a ref is named beside a table."""

import pytest

from lakebed.model.errors import InvalidName
from lakebed.model.names import check_column_name, parse_table_name, parse_table_ref


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


def test_an_at_sign_stands_before_a_ref() -> None:
    assert parse_table_ref("sales.eu.orders@v1.2/x") == (
        parse_table_name("sales.eu.orders"),
        "v1.2/x",
    )
    assert parse_table_ref("sales.orders") == (parse_table_name("sales.orders"), None)
    for wrong in ("sales.orders@", "@b", "orders@b"):
        with pytest.raises(InvalidName):
            parse_table_ref(wrong)
    with pytest.raises(InvalidName, match="contains an @"):
        parse_table_name("sales.or@ders")
