"""What every engine that reads plans promises: the same plan gives the same rows."""

import logging
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.core.plan import Plan
from lakebed.engines.arrow.read import read_schema
from lakebed.storage.base import Storage
from tests.conformance.engine_cases import CASES, Case
from tests.conformance.engines import ENGINES, Filter, by_arrow, shaped
from tests.interop.plain import plain

NAMES = attrgetter("name")
OTHERS = [name for name in ENGINES if name != "arrow"]
# (engine, case) -> why it is not as the reference; such a test fails when that is over.
GAPS: dict[tuple[str, str], str] = {
    (name, "zero columns"): "a frame without columns has no rows: refused"
    for name in ("polars", "polars-in-memory")
}


@pytest.fixture(scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture(scope="module")
def table(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakebed.Table]:
    with lakebed.open(tmp_path_factory.mktemp("engine") / "lake", create=True) as lake:
        yield case.build(lake)


@pytest.fixture(params=OTHERS)
def engine(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    with caplog.at_level(logging.INFO, "lakebed.engines"):
        yield str(request.param)
        assert not caplog.messages, "an engine tried what it cannot do"


@pytest.mark.parametrize("case", CASES, indirect=True, ids=NAMES)
def test_the_same_plan_gives_the_same_rows(
    engine: str, case: Case, table: lakebed.Table, request: pytest.FixtureRequest
) -> None:
    if (engine, case.name) in GAPS:
        request.applymarker(pytest.mark.xfail(reason=GAPS[engine, case.name], strict=True))
    for where in case.wheres:
        for columns in case.columns:
            plan = case.changed(table.scan(where=where, columns=columns).plan())

            assert_same(engine, plan, table, None)


@pytest.mark.parametrize("case", [c for c in CASES if c.filters], indirect=True, ids=NAMES)
def test_a_filter_handed_down_keeps_exactly_its_rows(
    engine: str, case: Case, table: lakebed.Table
) -> None:
    for condition in case.filters:
        assert_same(engine, case.changed(table.scan().plan()), table, condition)


def assert_same(engine: str, plan: Plan, table: lakebed.Table, condition: Filter | None) -> None:
    storage = storage_of(table)
    wanted = rows_of(by_arrow(plan, storage, condition), plan)
    found = rows_of(ENGINES[engine](plan, storage, condition), plan)

    assert found == wanted, (plan.predicate, plan.columns, condition)


def rows_of(rows: pa.Table, plan: Plan) -> list[str]:
    """Each row as text, in an order of its own: no engine promises one."""
    schema = read_schema(plan)
    assert rows.column_names == schema.names
    if not schema.names:
        return ["a row"] * rows.num_rows
    columns = [plain(rows.column(name)) for name in schema.names]
    values: list[list[Any]] = [
        [shaped(value, field.type) for value in column]
        for field, column in zip(schema, columns, strict=True)
    ]
    return sorted(map(repr, zip(*values, strict=True)))


def storage_of(table: lakebed.Table) -> Storage:
    return table._parts.storage
