"""Whose columns PySpark looks for lines of."""

from threading import Thread

import pytest
from pyspark.errors import utils

from lakebed.engines.spark.origins import without_lines


def test_only_columns_of_this_thread_and_block_go_without_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(utils, "_enable_debugging_cache", True)
    elsewhere: list[bool] = []

    with without_lines():
        assert not utils.is_debugging_enabled()
        other = Thread(target=lambda: elsewhere.append(bool(utils.is_debugging_enabled())))
        other.start()
        other.join()
        with without_lines():
            assert not utils.is_debugging_enabled()
        assert not utils.is_debugging_enabled()

    assert elsewhere == [True]
    assert utils.is_debugging_enabled()


def test_lines_that_nobody_wants_stay_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utils, "_enable_debugging_cache", False)

    with without_lines():
        assert not utils.is_debugging_enabled()

    assert utils.is_debugging_enabled() is False
