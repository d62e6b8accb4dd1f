"""Every type at every place, every partition transform: all readers return our rows, at every
version, filtered or not, or refuse what docs/readers.md lists for them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed import Lake, Table
from tests.interop import expected
from tests.interop.every_type import CASES, ROWS, Case
from tests.interop.plain import plain_rows
from tests.interop.readers import (
    At,
    DeltaArrow,
    DeltaQuery,
    Filter,
    Operator,
    Ours,
    PolarsDelta,
    PolarsIceberg,
    PyIceberg,
    Reader,
    places,
)

REPO = Path(__file__).resolve().parents[2]
OTHERS: dict[str, Reader] = {
    "deltalake to_pyarrow": DeltaArrow(),
    "deltalake QueryBuilder": DeltaQuery(),
    "Polars scan_delta": PolarsDelta(),
    "PyIceberg": PyIceberg(),
    "Polars scan_iceberg": PolarsIceberg(),
}
HEAD = ROWS // 2
CONDITIONS: tuple[tuple[Operator, int], ...] = (  # operator, row whose value is compared with
    ("=", 3),
    ("=", 5),
    ("=", 6),
    ("<", 6),
    (">=", 4),
    (">=", 2),
    ("<", 7),
)
# Polars says so once per scan, because its own planner is a package of its own.
pytestmark = pytest.mark.filterwarnings("ignore:Iceberg scan planning")


class Built:
    """A table, its versions and the rows it was given."""

    def __init__(self, lake: Lake, case: Case) -> None:
        self.case = case
        self.table: Table = case.build(lake)
        self.at: dict[int, At] = places(self.table)
        whole = case.rows(self.table.arrow_schema, range(ROWS))
        self.rows = plain_rows(whole)

    def rows_at(self, version: int) -> dict[int, dict[str, object]]:
        return {key: row for key, row in self.rows.items() if key < self.case.rows_at(version)}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with lakebed.open(tmp_path_factory.mktemp("every_type"), create=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def built() -> dict[str, Built]:
    return {}


def build(lake: Lake, built: dict[str, Built], case: Case) -> Built:
    if case.name not in built:
        built[case.name] = Built(lake, case)
    return built[case.name]


def pairs() -> list[tuple[Case, str]]:
    return [(c, name) for c in CASES for name, r in OTHERS.items() if r.format in c.formats]


def filters(case: Case) -> Iterator[Filter]:
    for column, (kind, values) in case.columns.items():
        if kind.startswith(("list", "map")):
            continue
        yield Filter(column, "null", kind)
        yield Filter(column, "not null", kind)
        if kind.startswith("struct"):
            continue
        for operator, row in CONDITIONS:
            yield Filter(column, operator, kind, values[row])


@pytest.mark.parametrize(
    ("case", "name"), pairs(), ids=[f"{c.name}-{n.replace(' ', '-')}" for c, n in pairs()]
)
def test_another_reader_returns_our_rows_or_refuses(
    case: Case, name: str, lake: Lake, built: dict[str, Built]
) -> None:
    ours, reader = build(lake, built, case), OTHERS[name]
    refusal = expected.REFUSES.get((name, case.feature))
    if refusal is not None:
        with pytest.raises(Exception, match=refusal):
            reader.read(ours.at[HEAD])
        return

    for version, at in ours.at.items():
        if version == 0 and (name, case.feature) in expected.REFUSES_EMPTY_TABLE:
            with pytest.raises(NotImplementedError):
                reader.read(at)
            continue
        read = plain_rows(reader.read(at))
        if (name, case.feature) in expected.READS_EMPTY:
            assert read != ours.rows_at(version) or version == 0, "no longer a gap: tell docs"
            read = {k: {c: v or None for c, v in row.items()} for k, row in read.items()}
        assert read == ours.rows_at(version)

    check_filters(name, reader, ours)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_we_return_our_rows_and_the_check_is_clean(
    case: Case, lake: Lake, built: dict[str, Built]
) -> None:
    ours = build(lake, built, case)

    for version in ours.at:
        assert plain_rows(ours.table.scan(version=version).to_arrow()) == ours.rows_at(version)
    check_filters("lakebed", Ours(ours.table), ours)
    assert lake.check(ours.table.name).findings == []


def check_filters(name: str, reader: Reader, ours: Built) -> None:
    at = ours.at[HEAD]
    whole = reader.read(at)
    for condition in filters(ours.case):
        known = expected.gap(name, ours.case, condition)
        with pytest.raises(Exception) if known == "raises" else contextlib.nullcontext():  # noqa: PT011
            found, wanted = reader.ids(at, condition, whole)
            if known == "differs":
                assert found != wanted, f"{condition} works now: tell docs"
            else:
                lost = set(wanted) - set(found)
                assert set(found) <= set(wanted), condition
                assert lost <= expected.loses(name, ours.case, condition), condition


def test_datafusion_loses_nan_in_tables_of_its_own_making_too(tmp_path: Path) -> None:
    """So that the gap is known to be the reader's."""
    import deltalake

    deltalake.write_deltalake(tmp_path, pa.table({"id": [0, 1], "x": [float("nan"), -0.0]}))
    table = deltalake.DeltaTable(tmp_path)

    rows = deltalake.QueryBuilder().register("t", table).execute("SELECT id FROM t WHERE x >= 1")

    assert pa.table(rows.read_all()).num_rows == 0, "works now: take the gap out of docs"


def test_pyiceberg_still_misreads_doubles_of_partitions(lake: Lake) -> None:
    """Why a table partitioned by a float is refused while Iceberg is published."""
    from pyiceberg.avro.decoder import new_decoder

    read = new_decoder(b"\xff\xff\xff\xff\xff\xff\xef\x7f").read_double()

    assert read == float("inf"), "works now: allow such tables"
    with pytest.raises(lakebed.InvalidInput, match="partitioned by a float"):
        lake.create_table("types.by_double", "id long, d double", partition_by=["d"])
    table = lake.create_table(
        "types.by_double", "id long, d double", partition_by=["d"], formats=["delta"]
    )
    with pytest.raises(lakebed.InvalidInput, match="partitioned by a float"):
        table.set_formats(["delta", "iceberg"])


def test_the_page_of_readers_says_what_these_tests_show() -> None:
    page = (REPO / "docs" / "readers.md").read_text(encoding="utf-8")

    for row in expected.page_rows(CASES):
        assert row in page.splitlines()
