"""An engine that is not installed is named, with what to install."""

import sys

import pytest

import lakebed
from lakebed.model.errors import MissingExtra


def forget(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    for name in [name for name in sys.modules if name.startswith(f"lakebed.engines.{library}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)


def test_a_lazy_frame_needs_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    with lakebed.open(":memory:", create=True) as lake:
        scan = lake.create_table("s.t", "id long").scan()
        forget(monkeypatch, "polars")

        with pytest.raises(MissingExtra, match="Polars is not installed") as caught:
            scan.to_polars()

    assert "lakebed[polars]" in str(caught.value.hint)


def test_spark_needs_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    with lakebed.open(":memory:", create=True) as lake:
        forget(monkeypatch, "spark")
        monkeypatch.setitem(sys.modules, "pyspark", None)

        with pytest.raises(MissingExtra, match="PySpark is not installed") as caught:
            lake.spark()

    assert "lakebed[spark]" in str(caught.value.hint)


def test_a_session_needs_datafusion(monkeypatch: pytest.MonkeyPatch) -> None:
    with lakebed.open(":memory:", create=True) as lake:
        forget(monkeypatch, "datafusion")

        with pytest.raises(MissingExtra, match="DataFusion is not installed") as caught:
            lake.datafusion()

    assert "lakebed[datafusion]" in str(caught.value.hint)
