"""`lakebed run`, `runs`, `lineage`, `new-pipeline` without Spark; with it: tests/spark."""

import json

import pytest

from lakebed.cli.run_progress import how_far
from lakebed.model.runs import StepWork
from lakebed.pipelines.progress import Progressed
from tests.doors.cli.command import Lakebed

PIPELINE = """
from lakebed.pipelines import Pipeline, changes, current, files

p = Pipeline("shop")

@p.step("silver.orders", key="id")
def orders(raw=changes("sales.orders")):
    return raw

@p.step("gold.daily", mode="replace")
def daily(orders=current("silver.orders"), *, since: int = 1):
    return orders

@p.step("bronze.raw")
def raw(new=files("in/*.csv", schema="id long")):
    return new
"""


@pytest.fixture
def shop(orders: Lakebed) -> Lakebed:
    orders.write("shop.py", PIPELINE)
    return orders


def test_a_dry_run_tells_what_would_be_done_and_writes_nothing(shop: Lakebed) -> None:
    (shop.folder / "in").mkdir()
    shop.write("in/1.csv", "1\n")

    answer = shop.ok("run", "shop.py", "--dry-run")

    assert answer.stdout.splitlines() == [
        "silver.orders  incremental (merge, creates it)",
        "    sales.orders: up to version 1",
        "bronze.raw  incremental (append, creates it)",
        "    in/*.csv: 1 new files",
        "gold.daily  incremental (replace, creates it)",
        "    silver.orders: not there yet",
        "    after silver.orders",
    ]
    assert shop.json("runs") == []


def test_a_dry_run_answers_in_json(shop: Lakebed) -> None:
    plan = shop.json("run", "shop.py", "--dry-run", "--select", "silver.orders")

    assert [step["table"] for step in plan] == ["silver.orders"]


@pytest.mark.parametrize(
    ("form", "said"),
    [("text", "gold.daily  [replace]"), ("mermaid", "flowchart LR"), ("svg", "<svg ")],
)
def test_the_graph_is_drawn(shop: Lakebed, form: str, said: str) -> None:
    assert said in shop.ok("run", "shop.py", "--graph", form).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--select", "gold.dayly"], "did you mean gold.daily?"),
        (["--param", "until=3"], "the parameters are: since"),
        (["--param", "since=x"], "which is no int"),
        (["--backfill", "gold.daily"], "a backfill needs a step and the rows"),
        (["--pipeline", "other"], "makes no pipeline 'other'"),
    ],
)
def test_bad_arguments_are_told_before_anything_runs(
    shop: Lakebed, arguments: list[str], said: str
) -> None:
    answer = shop("run", "shop.py", *arguments)

    assert answer.exit_code == 1
    assert said in answer.stderr


def test_a_file_that_fails_is_told_with_its_line(shop: Lakebed) -> None:
    shop.write("broken.py", "x = 1\n1 / 0\n")

    answer = shop("run", "broken.py")

    assert answer.exit_code == 1
    assert "broken.py:2: ZeroDivisionError" in answer.stderr


def test_an_input_that_is_not_there_fails_before_spark_starts(shop: Lakebed) -> None:
    shop.write("other.py", PIPELINE.replace("sales.orders", "sales.order"))

    answer = shop("run", "other.py", "--json")

    assert answer.exit_code == 1
    assert "reads sales.order, which is not there" in answer.stderr
    events = [json.loads(line) for line in answer.stdout.splitlines()]
    assert [event["event"] for event in events] == ["run_began", "run_ended"]
    assert events[-1]["status"] == "failed"
    (run,) = shop.json("runs")
    assert run["error"]["step"] == "silver.orders"
    assert "sales.order" in shop.ok("runs", run["id"]).stdout
    assert "failed" in shop.ok("runs").stdout


def test_unknown_runs_and_tables_are_refused(shop: Lakebed) -> None:
    assert "RUN_NOT_FOUND" in shop("runs", "abc").stderr
    assert "TABLE_NOT_FOUND" in shop("lineage", "no.table", "--down").stderr
    assert shop.json("lineage", "sales.orders") == []


def test_a_new_project_is_written_once(lakebed: Lakebed) -> None:
    answer = lakebed.json("new-pipeline", "my-shop")

    assert sorted(answer["files"]) == [
        "my-shop/README.md",
        "my-shop/in/orders-1.csv",
        "my-shop/my_shop.py",
        "my-shop/test_my_shop.py",
    ]
    assert "is there already" in lakebed("new-pipeline", "my-shop").stderr
    assert "begin with a letter" in lakebed("new-pipeline", "1 shop").stderr


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Progressed("a.b", 0, 0, 0, StepWork()), ""),
        (Progressed("a.b", 2, 3, 8, StepWork()), "3/8 tasks of 2 stages"),
        (
            Progressed(None, 1, 0, 4, StepWork(bytes_read=2_500_000)),
            "0/4 tasks of 1 stage, 2.5 MB read",
        ),
        (
            Progressed("a.b", 0, 0, 0, StepWork(1_000, 1_200_000, 1, 100_000)),
            "1,000 rows (1.2 MB) read, 1 row (0.1 MB) written",
        ),
    ],
)
def test_progress_is_told_in_tasks_rows_and_bytes(event: Progressed, said: str) -> None:
    assert how_far(event) == said
