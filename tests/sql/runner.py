"""Runs a file of SQL with the answers it must give: `tests/sql/*.test`.

A file is records separated by empty lines; lines that begin with # are comments.

    statement ok                    the statement (or script) runs
    statement error CODE            it is refused with this code; nothing is written
    query [sorted]                  rows follow ----, a line each, values separated by |
    session open|close              statements up to the close share a session (BEGIN, USE)
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import lakebed


@dataclass(frozen=True)
class Record:
    line: int
    words: tuple[str, ...]
    sql: str
    answer: tuple[str, ...]


def records(path: Path) -> Iterator[Record]:
    block: list[tuple[int, str]] = []
    for number, line in enumerate([*path.read_text("utf-8").splitlines(), ""], 1):
        if line.startswith("#"):
            continue
        if line.strip():
            block.append((number, line))
        elif block:
            yield _record(block)
            block = []


def _record(block: list[tuple[int, str]]) -> Record:
    number, head = block[0]
    lines = [line for _, line in block[1:]]
    at = lines.index("----") if "----" in lines else len(lines)
    return Record(number, tuple(head.split()), "\n".join(lines[:at]), tuple(lines[at + 1 :]))


def run_file(lake: Any, path: Path) -> int:
    """The number of records that were run; the first wrong one fails with its line."""
    count = 0
    with ExitStack() as stack:
        session: Any = None
        for record in records(path):
            count += 1
            place = f"{path.name}:{record.line}"
            match record.words:
                case ("session", "open"):
                    session = stack.enter_context(_session(lake))
                case ("session", "close"):
                    stack.pop_all().close()
                    session = None
                case ("statement", "ok"):
                    (session or lake).sql(record.sql).close()
                case ("statement", "error", code):
                    _refused(session or lake, record.sql, code, place)
                case ("query", *options):
                    _answered(session or lake, record, place, is_sorted="sorted" in options)
                case _:
                    raise AssertionError(f"{place}: what is {' '.join(record.words)}?")
    return count


def _session(lake: Any) -> AbstractContextManager[Any]:
    session: AbstractContextManager[Any] = lake.sql_session()
    return session


def _refused(where: Any, sql: str, code: str, place: str) -> None:
    with pytest.raises(lakebed.LakebedError) as refusal, where.sql(sql) as result:
        result.to_arrow()
    error = refusal.value
    assert error.code == code, f"{place}: {error.code}: {error.message}"
    assert error.hint, f"{place}: {error.code} has no hint"


def _answered(where: Any, record: Record, place: str, *, is_sorted: bool) -> None:
    with where.sql(record.sql) as result:
        columns = [column.to_pylist() for column in result.to_arrow().columns]
        rows = ["|".join(map(_text, row)) for row in zip(*columns, strict=True)]
        found = [line for row in rows for line in row.split("\n")]
    wanted = list(record.answer)
    if is_sorted:
        found, wanted = sorted(found), sorted(wanted)
    assert found == wanted, f"{place}:\n" + "\n".join(found)


def _text(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case datetime():
            return value.isoformat(sep=" ").replace("+00:00", "Z")
        case date() | Decimal():
            return str(value)
        case dict():
            return "{" + ", ".join(f"{k}: {_text(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_text, value)) + "]"
        case bytes():
            return value.hex()
        case _:
            return str(value)
