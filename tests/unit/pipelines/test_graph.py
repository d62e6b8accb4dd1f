"""What is known of a pipeline before anything runs: order, circles, names, modes, parameters."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from lakebed.model.errors import InvalidName, PipelineInvalid
from lakebed.pipelines import Pipeline, changes, current, expect, files, jdbc
from lakebed.pipelines.drawing import draw
from lakebed.pipelines.loading import load_pipeline
from lakebed.pipelines.plan import Planned, make_request, plan_steps


def shop() -> Pipeline:
    p = Pipeline("shop")

    @p.step("gold.daily", mode="replace_partitions", partition_by="day")
    def daily(
        orders: DataFrame = current("silver.orders"), rates: DataFrame = current("ref.rates")
    ) -> DataFrame:
        return orders

    @p.step("silver.orders", key="id")
    @expect.drop("amount >= 0", quarantine="silver.orders_bad")
    def orders(raw: DataFrame = changes("bronze.orders")) -> DataFrame:
        return raw

    @p.step("gold.summary", mode="replace")
    def summary(
        daily: DataFrame = current("gold.daily"), *, since: date = date(2026, 1, 1)
    ) -> DataFrame:
        return daily

    @p.step("bronze.orders")
    def raw(new: DataFrame = files("in/*.csv", header=True)) -> DataFrame:
        return new

    return p


def tables(planned: Sequence[Planned]) -> list[str]:
    return [each.step.table for each in planned]


def test_steps_stand_in_the_order_of_what_they_read() -> None:
    order = [step.table for step in shop().graph().steps]

    assert order == ["bronze.orders", "silver.orders", "gold.daily", "gold.summary"]


def test_tables_that_no_step_makes_come_from_outside() -> None:
    assert shop().graph().outside() == ("ref.rates",)


def test_a_key_means_merge_and_none_means_append() -> None:
    modes = {step.table: step.output.mode for step in shop().steps}

    assert modes["silver.orders"] == "merge"
    assert modes["bronze.orders"] == "append"


@pytest.mark.parametrize(
    ("selection", "chosen"),
    [
        ("gold.daily", ["gold.daily"]),
        ("gold.daily+", ["gold.daily", "gold.summary"]),
        ("+gold.daily", ["bronze.orders", "silver.orders", "gold.daily"]),
        ("+silver.orders+", ["bronze.orders", "silver.orders", "gold.daily", "gold.summary"]),
        ("daily", ["gold.daily"]),
    ],
)
def test_selections_choose_steps_and_what_is_before_and_after(
    selection: str, chosen: list[str]
) -> None:
    assert tables(plan_steps(shop().graph(), make_request(selection))) == chosen


def test_a_full_refresh_is_of_a_step_and_everything_after_it() -> None:
    planned = plan_steps(shop().graph(), make_request(full_refresh="silver.orders"))

    assert {p.step.table: p.how for p in planned} == {
        "bronze.orders": "incremental",
        "silver.orders": "full refresh",
        "gold.daily": "full refresh",
        "gold.summary": "full refresh",
    }


def test_a_backfill_is_of_one_step_and_needs_a_condition() -> None:
    request = make_request(backfill="gold.daily", where="day > '2026-11-01'")

    (only,) = plan_steps(shop().graph(), request)

    assert (only.how, only.where) == ("backfill", "day > '2026-11-01'")
    with pytest.raises(PipelineInvalid, match="needs a step and the rows"):
        make_request(backfill="gold.daily")


def test_parameters_are_read_as_the_type_that_the_function_says() -> None:
    planned = plan_steps(shop().graph(), make_request(params={"since": "2026-11-01"}))

    assert planned[-1].values == {"since": date(2026, 11, 1)}


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"since": "yesterday"}, "'yesterday', which is no date"),
        ({"sinse": "2026-11-01"}, "no step has a parameter 'sinse'"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, object], said: str) -> None:
    with pytest.raises(PipelineInvalid, match=said):
        plan_steps(shop().graph(), make_request(params=params))


def test_a_missing_parameter_is_named() -> None:
    p = Pipeline("p")

    @p.step("a.b", mode="replace")
    def b(day: date, x: DataFrame = current("a.a")) -> DataFrame:
        return x

    with pytest.raises(PipelineInvalid, match=r"step a\.b needs the parameter 'day'"):
        plan_steps(p.graph(), make_request())


def test_circles_are_shown() -> None:
    p = Pipeline("p")

    @p.step("a.one")
    def one(x: DataFrame = current("a.two")) -> DataFrame:
        return x

    @p.step("a.two")
    def two(x: DataFrame = current("a.one")) -> DataFrame:
        return x

    with pytest.raises(PipelineInvalid, match=r"circle: a\.(one|two) -> a\.(one|two) -> a\."):
        p.graph()


def test_two_steps_with_one_output_are_refused_with_both_lines() -> None:
    p = Pipeline("p")

    @p.step("a.one")
    def first(x: DataFrame = current("a.x")) -> DataFrame:
        return x

    @p.step("a.one")
    def second(x: DataFrame = current("a.y")) -> DataFrame:
        return x

    with pytest.raises(PipelineInvalid, match=r"first \(test_graph.py:\d+\) and second"):
        p.graph()


def test_a_table_of_rejected_rows_is_nobody_elses_output() -> None:
    p = shop()

    @p.step("silver.orders_bad")
    def bad(x: DataFrame = current("a.x")) -> DataFrame:
        return x

    with pytest.raises(PipelineInvalid, match=r"two steps make silver\.orders_bad"):
        p.graph()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "upsert"}, "there is no mode 'upsert'"),
        ({"mode": "merge"}, "mode 'merge' needs a key"),
        ({"mode": "scd2"}, "mode 'scd2' needs a key"),
        ({"mode": "replace_partitions"}, "needs partitions"),
        ({"sequence_by": "ts"}, "op and sequence_by are for merge and scd2"),
    ],
)
def test_bad_modes_are_refused_where_the_step_is_declared(
    options: dict[str, Any], said: str
) -> None:
    p = Pipeline("p")

    def step(x: DataFrame = current("a.x")) -> DataFrame:
        return x

    with pytest.raises(PipelineInvalid, match=said):
        p.step("a.b", **options)(step)


def test_a_step_without_input_and_one_that_reads_itself_are_refused() -> None:
    p = Pipeline("p")
    with pytest.raises(PipelineInvalid, match="has no input"):
        p.step("a.b")(lambda: None)

    def itself(x: DataFrame = current("a.b")) -> DataFrame:
        return x

    with pytest.raises(PipelineInvalid, match="reads the table that it makes"):
        p.step("a.b")(itself)


def test_bad_inputs_are_refused() -> None:
    with pytest.raises(InvalidName):
        current("orders")
    with pytest.raises(PipelineInvalid, match="does not say what the files are"):
        files("in/*")
    with pytest.raises(PipelineInvalid, match="a table or a query"):
        jdbc("jdbc:postgresql://localhost/x")
    with pytest.raises(PipelineInvalid, match="no row can be dropped"):
        expect.drop(expect.row_count(least=1))


def test_an_unknown_step_is_told_with_the_nearest_name() -> None:
    with pytest.raises(PipelineInvalid, match=r"no step 'gold\.dayly'") as caught:
        plan_steps(shop().graph(), make_request("gold.dayly"))

    assert caught.value.hint == "did you mean gold.daily?"


def test_expectations_stand_in_the_order_of_the_file() -> None:
    p = Pipeline("p")

    @p.step("a.b")
    @expect.fail(expect.unique("id"))
    @expect.warn("x > 0")
    def b(x: DataFrame = current("a.x")) -> DataFrame:
        return x

    assert [e.text for e in p.steps[0].expectations] == ["unique(id)", "x > 0"]


def test_the_graph_is_drawn_as_text_mermaid_and_svg() -> None:
    graph = shop().graph()

    text, mermaid, svg = (draw(graph, form) for form in ("text", "mermaid", "svg"))

    assert "silver.orders  [merge by id]" in text
    assert "-> silver.orders_bad  (rejected rows)" in text
    assert mermaid.startswith("flowchart LR")
    assert "-.->" in mermaid
    assert svg.startswith("<svg ")
    assert ">gold.summary</text>" in svg


def test_a_pipeline_is_loaded_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "sales.py"
    file.write_text(
        "from lakebed.pipelines import Pipeline, current\n"
        "p = Pipeline('sales')\n"
        "@p.step('a.b')\n"
        "def b(x=current('a.a')):\n"
        "    return x\n"
        "if __name__ == '__main__':\n"
        "    raise SystemExit('ran as a program')\n"
    )

    pipeline = load_pipeline(file)

    assert (pipeline.name, pipeline.folder) == ("sales", tmp_path)
    assert pipeline.steps[0].place == "sales.py:3"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\n", "makes no pipeline"),
        ("x = \n", "broken.py:1: SyntaxError"),
        ("x = 1\nraise ValueError('no')\n", "broken.py:2: ValueError: no"),
        (
            "from lakebed.pipelines import *\np = Pipeline('a')\nq = Pipeline('b')\n",
            "several pipelines: a, b",
        ),
        (
            "from lakebed.pipelines import *\np = Pipeline('a')\n\np.step('a.b', mode='x')\n",
            "broken.py:4: step a.b: there is no mode 'x'",
        ),
    ],
)
def test_a_file_that_is_no_pipeline_is_told_with_its_line(
    tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "broken.py"
    file.write_text(text)

    with pytest.raises(PipelineInvalid, match=said):
        load_pipeline(file)
