"""CHECK constraints as a table keeps them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition in our SQL, and the same in Spark's; None where Spark has no words for it."""

    sql: str
    spark: str | None


def constraints_to_record(
    constraints: Mapping[str, Constraint],
) -> dict[str, str | list[str | None]]:
    """Most say the same in both dialects, and are kept once."""
    return {
        name: each.sql if each.sql == each.spark else [each.sql, each.spark]
        for name, each in constraints.items()
    }


def constraints_from_record(
    record: Mapping[str, str | list[str | None]],
) -> dict[str, Constraint]:
    found = {}
    for name, kept in record.items():
        sql, spark = (kept, kept) if isinstance(kept, str) else kept
        assert sql is not None, name
        found[name] = Constraint(sql, spark)
    return found
