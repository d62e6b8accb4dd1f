"""The project that `lakebed new-pipeline` writes: small, working, tested."""

import re
from pathlib import Path

from lakebed.model.errors import AlreadyExists, PipelineInvalid

_PIPELINE = '''"""The pipeline {name}: orders from CSV files, cleaned, and summed up by day."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebed.pipelines import Pipeline, changes, current, expect, files

p = Pipeline("{name}")


@p.step("bronze.orders")
def raw(
    new: DataFrame = files(
        "in/*.csv", header=True, schema="order_id long, day date, amount string"
    ),
) -> DataFrame:
    """Every file once, as it came."""
    return new


@p.step("silver.orders", key="order_id")
@expect.fail("order_id is not null")
@expect.drop("amount >= 0", quarantine="silver.orders_rejected")
def orders(raw: DataFrame = changes("bronze.orders")) -> DataFrame:
    """One row per order; a later file may correct an earlier one."""
    return raw.selectExpr("order_id", "day", "cast(amount as decimal(12, 2)) as amount")


@p.step("gold.daily", mode="replace")
def daily(orders: DataFrame = current("silver.orders")) -> DataFrame:
    """Orders and their sum by day."""
    return orders.groupBy("day").agg(
        F.count("*").alias("orders"), F.sum("amount").alias("amount")
    )
'''
_TEST = '''"""The pipeline {name} on a few rows."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from {module} import p

from lakebed.pipelines import run_pipeline


def test_orders_are_cleaned_and_summed_up() -> None:
    result = run_pipeline(
        p,
        inputs={{
            "bronze.orders": [
                {{"order_id": 1, "day": "2026-11-01", "amount": "10.50"}},
                {{"order_id": 2, "day": "2026-11-01", "amount": "4.50"}},
                {{"order_id": 3, "day": "2026-11-02", "amount": "-1"}},
            ]
        }},
    )

    assert [row["order_id"] for row in result["silver.orders"]] == [1, 2]
    assert [row["order_id"] for row in result["silver.orders_rejected"]] == [3]
    assert [row["orders"] for row in result["gold.daily"]] == [2]
'''
_INPUT = "order_id,day,amount\n1,2026-11-01,10.50\n2,2026-11-01,4.50\n3,2026-11-02,-1\n"
_README = """# {name}

```console
$ lakebed init lake
$ lakebed -l lake run {module}.py
$ lakebed -l lake sql "SELECT * FROM gold.daily"
$ pytest test_{module}.py
```

Every hour, by cron: `0 * * * * lakebed -l /path/to/lake run /path/to/{module}.py`
"""


def write_project(name: str, folder: Path) -> list[Path]:
    """Its files; nothing that is there is overwritten."""
    module = re.sub(r"\W", "_", name)
    if not module.isidentifier():
        raise PipelineInvalid(f"{name!r} is no name of a pipeline", hint="begin with a letter")
    texts = {
        folder / f"{module}.py": _PIPELINE,
        folder / f"test_{module}.py": _TEST,
        folder / "README.md": _README,
        folder / "in" / "orders-1.csv": None,
    }
    there = [path for path in texts if path.exists()]
    if there:
        raise AlreadyExists(f"{there[0]} is there already", hint="choose another --folder")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        said = _INPUT if text is None else text.format(name=name, module=module)
        path.write_text(said, encoding="utf-8")
    return list(texts)
