"""The tables of every type through DuckDB 1.5.5's own readers of Iceberg and Delta."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import lakebed
from tests.interop import expected
from tests.interop.duckdb155 import asked_of_duckdb
from tests.interop.every_type import CASES, Case
from tests.interop.readers import At, Filter, day, moment, sql_literal
from tests.interop.test_every_type import HEAD, Built, filters


@dataclass(frozen=True)
class Question:
    """A query on one table at one version, and the keys or rows it must return."""

    case: Case
    reader: str
    sql: str
    version: int = HEAD
    condition: Filter | None = None


Answers = list[tuple[Question, dict[str, Any]]]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    with lakebed.open(tmp_path_factory.mktemp("duckdb"), create=True) as lake:
        return {case.name: Built(lake, case) for case in CASES}


@pytest.fixture(scope="module")
def answers(tables: dict[str, Built]) -> Answers:
    """All questions in one process: DuckDB has an interpreter of its own."""
    questions = [question for built in tables.values() for question in asked(built)]
    return list(zip(questions, asked_of_duckdb([q.sql for q in questions]), strict=True))


def asked(built: Built) -> Iterator[Question]:
    case = built.case
    for version, at in built.at.items():
        for reader, source in sources(case, at):
            yield Question(case, reader, f"SELECT * FROM {source}", version)
    at = built.at[HEAD]
    for reader, source in sources(case, at):
        for condition in filters(case):
            matches = mask(condition)
            yield Question(
                case, reader, f"SELECT id FROM {source} WHERE {matches}", HEAD, condition
            )
            every = f"(SELECT id, {matches} AS m FROM {source})"
            yield Question(case, reader, f"SELECT id, m FROM {every}", HEAD, condition)


def sources(case: Case, at: At) -> Iterator[tuple[str, str]]:
    if "iceberg" in case.formats:
        yield "DuckDB iceberg_scan", f"iceberg_scan('{at.metadata_path}')"
        if at.snapshot_id is not None:
            by_folder = f"iceberg_scan('{at.location}', snapshot_from_id={at.snapshot_id})"
            yield "DuckDB iceberg_scan", by_folder
    if "delta" in case.formats:
        yield "DuckDB delta_scan", f"delta_scan('{at.location}', version={at.version})"


def mask(condition: Filter) -> str:
    name = f'"{condition.column}"'
    match condition.operator:
        case "null":
            return f"{name} IS NULL"
        case "not null":
            return f"{name} IS NOT NULL"
        case operator:
            return f"{name} {operator} {literal(condition)}"


def literal(condition: Filter) -> str:
    value = condition.value
    match condition.kind.partition("(")[0]:
        case "date":
            return f"DATE '{day(value).isoformat()}'"
        case "timestamp":
            return f"TIMESTAMPTZ '{moment(value).isoformat()}+00'"
        case "timestamp_ntz":
            return f"TIMESTAMP '{moment(value).isoformat()}'"
        case "timestamp_ns" | "timestamptz_ns":
            return f"make_timestamp_ns({value})"
        case "time":
            return f"TIME '{moment(value).time().isoformat()}'"
        case "uuid":
            return f"'{value.hex()}'::UUID"
        case "float" | "double":
            return f"'{value!r}'::{condition.kind}"
        case "decimal":
            return f"'{value:f}'::{condition.kind}"
        case "binary" | "fixed":
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        case _:
            return sql_literal(value)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_duckdb_returns_our_rows_or_refuses(
    case: Case, answers: Answers, tables: dict[str, Built]
) -> None:
    mine = [(q, a) for q, a in answers if q.case.name == case.name and q.condition is None]
    assert {q.version for q, _ in mine} == set(range(HEAD + 1))

    for question, answer in mine:
        refusal = expected.REFUSES.get((question.reader, case.feature))
        if refusal is not None:
            assert refusal in answer.get("error", "it reads the table now: tell docs")
            continue
        wanted = tables[case.name].rows_at(question.version)
        shown = {str(k): {n: repr(v) for n, v in row.items()} for k, row in wanted.items()}
        assert answer == {"rows": shown}, question.sql


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_duckdb_finds_what_matches(case: Case, answers: Answers) -> None:
    """Filtered, so that it may prune by our statistics, and told row by row: the same keys."""
    for question, pruned, wanted in matched(case, answers):
        assert question.condition is not None
        may_lose = expected.loses(question.reader, case, question.condition)
        if "error" in pruned:
            assert may_lose, (question.sql, pruned)
            assert "INTERNAL Error" in pruned["error"]
            continue
        found = {int(key) for key in pruned["rows"]}
        assert found <= wanted, question.sql
        assert wanted - found <= may_lose, question.sql


def matched(case: Case, answers: Answers) -> Iterator[tuple[Question, dict[str, Any], set[int]]]:
    mine = [(q, a) for q, a in answers if q.case.name == case.name and q.condition is not None]
    for (question, pruned), (_, every) in zip(mine[::2], mine[1::2], strict=True):
        if (question.reader, case.feature) not in expected.REFUSES:
            yield question, pruned, {int(k) for k, r in every["rows"].items() if r["m"] == "True"}


@pytest.mark.parametrize(
    "name", ["day_c_timestamp", "month_c_timestamp", "truncate_c_decimal_38_10", "bucket_c_uuid"]
)
def test_duckdb_still_loses_rows_of_some_partitions(name: str, answers: Answers) -> None:
    """When it no longer does: take the line out of docs/readers.md and of `expected.loses`."""
    case = next(c for c in CASES if c.name == name)
    asked = matched(case, answers)

    assert any(
        "error" in pruned or len(pruned["rows"]) < len(wanted) for _, pruned, wanted in asked
    )
