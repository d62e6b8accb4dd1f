"""Which objects are cached: those whose names are given once."""

import pytest

from lakebed.storage.objects.cached import is_given_once

RANDOM = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "path",
    [
        f"shop/orders/data/{RANDOM}-00000.parquet",
        f"shop/orders/data/day=2024-01-01/{RANDOM}-00001.parquet",
        f"shop/orders/data/{RANDOM}/part-00000-c000.zstd.parquet",
    ],
)
def test_data_files_are_given_once(path: str) -> None:
    assert is_given_once(path)


@pytest.mark.parametrize(
    "path",
    [
        "shop/orders/_delta_log/00000000000000000010.checkpoint.parquet",
        "shop/orders/_delta_log/_last_checkpoint",
        f"shop/orders/metadata/{RANDOM}.avro",
        "shop/orders/metadata/v1.metadata.json",
        "shop/orders/data/00000.parquet",
        f"data/{RANDOM}/_delta_log/00000000000000000010.checkpoint.parquet",
        f"shop/orders/_change_data/{RANDOM}.parquet",
    ],
)
def test_names_that_may_come_back_are_not(path: str) -> None:
    assert not is_given_once(path)
