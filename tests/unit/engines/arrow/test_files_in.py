"""Files of every format become rows; what cannot be read is named with its place."""

import base64
import gzip
import io
import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from lakebed.engines.arrow.conform import conform
from lakebed.engines.arrow.files_in import read_files
from lakebed.engines.arrow.types import fields_from_arrow, to_arrow
from lakebed.model.errors import InvalidInput, SchemaMismatch, UnreadableInput
from lakebed.model.schema import Schema, new_schema
from lakebed.model.schema_text import parse_schema

TABLE = pa.table({"a": [1, 2], "b": ["x", None]})
ROWS = TABLE.to_pylist()


def schema_of(text: str) -> Schema:
    return new_schema(parse_schema(text))


def rows_of(paths: Any, text: str | None = None, **more: Any) -> list[dict[str, Any]]:
    if text is None:
        batches = read_files(paths, **more)
        return list(pa.Table.from_batches(batches, batches.schema).to_pylist())
    schema = schema_of(text)
    batches = read_files(paths, schema=schema, **more)
    return list(pa.Table.from_batches(conform(batches, schema), to_arrow(schema)).to_pylist())


def test_every_format_gives_the_same_rows(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    pyarrow.feather.write_feather(TABLE, str(tmp_path / "t.feather"))
    with pa.ipc.new_stream(str(tmp_path / "t.arrows"), TABLE.schema) as writer:
        writer.write_table(TABLE)
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2,\n")
    (tmp_path / "t.json").write_text(json.dumps(ROWS, indent=1))
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(r) + "\n" for r in ROWS))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n1,x\n2,\n"))
    lines = "\n\n".join(json.dumps(r) for r in ROWS).encode()
    with pa.CompressedOutputStream(str(tmp_path / "t.ndjson.zst"), "zstd") as stream:
        stream.write(lines)

    for path in sorted(tmp_path.iterdir()):
        assert rows_of(path, "a int, b string") == ROWS, path
        assert rows_of(str(path)) == ROWS, path


@pytest.mark.parametrize("format", ["csv", "json", "jsonl", "parquet", "arrow"])
def test_standard_input_needs_a_format(format: str) -> None:
    sink = io.BytesIO()
    match format:
        case "csv":
            sink.write(b"a,b\n1,x\n2,\n")
        case "json":
            sink.write(json.dumps(ROWS).encode())
        case "jsonl":
            sink.write("\n".join(json.dumps(r) for r in ROWS).encode())
        case "parquet":
            pq.write_table(TABLE, sink)
        case _:
            with pa.ipc.new_stream(sink, TABLE.schema) as writer:
                writer.write_table(TABLE)

    stdin = io.BytesIO(sink.getvalue())

    assert rows_of("-", "a int, b string", format=format, stdin=stdin) == ROWS
    with pytest.raises(UnreadableInput, match="format"):
        rows_of("-", stdin=stdin)
    with pytest.raises(UnreadableInput):
        rows_of("-", format=format)


def test_globs_are_sorted_and_files_keep_the_order_given(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.csv").write_text(f"n\n{name}\n")
    (tmp_path / ".hidden.csv").write_text("n\nhidden\n")

    assert [r["n"] for r in rows_of(f"{tmp_path}/*.csv", "n string")] == ["a", "b", "c"]
    both = [tmp_path / "c.csv", f"{tmp_path}/*.csv"]
    assert [r["n"] for r in rows_of(both, "n string")] == ["c", "a", "b"]


def test_a_name_with_glob_characters_is_a_file_if_it_exists(tmp_path: Path) -> None:
    (tmp_path / "a[1].csv").write_text("n\n1\n")

    assert rows_of(tmp_path / "a[1].csv", "n int") == [{"n": 1}]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none.csv", "no such file"),
        ("*.csv", "no file matches"),
        ("", "folder"),
        ("x.txt", "format"),
    ],
)
def test_what_is_not_there_is_named(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "x.txt").write_text("a")

    with pytest.raises(UnreadableInput) as caught:
        rows_of(f"{tmp_path}/{name}", "a int")

    assert says in caught.value.message + caught.value.hint
    assert str(tmp_path) in caught.value.message


def test_no_files_and_an_unknown_format_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput):
        read_files([])
    (tmp_path / "x").write_text("")
    with pytest.raises(InvalidInput, match="xlsx"):
        read_files(tmp_path / "x", format="xlsx")


DAMAGED = {
    "t.parquet": b"PAR1 not really",
    "empty.parquet": b"",
    "t.arrow": b"ARROW1\0\0 cut",
    "t.feather": b"nonsense",
    "t.csv": b"",
    "many.csv": b"a,b\n1,2,3\n",
    "few.csv": b'a,b\n"1\n1",2\n\n3\n',
    "twice.csv": b"a,a\n1,2\n",
    "latin1.csv": b"a,b\n1,\xff\n",
    "t.csv.gz": gzip.compress(b"a,b\n" + b"1,2\n" * 5000)[:-12],
    "plain.csv.gz": b"a,b\n1,2\n",
    "t.jsonl": b'{"a": 1}\n{"a": \n',
    "t.json": b'[{"a": 1}, {"a":',
    "more.json": b'[{"a": 1}] x',
    "comma.json": b'[{"a": 1} {"a": 2}]',
    "latin1.json": b'[{"b": "\xff"}]',
    "deep.jsonl": b"[" * 100_000,
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("text", ["a int, b string", None])
def test_a_damaged_file_is_named(tmp_path: Path, name: str, text: str | None) -> None:
    (tmp_path / name).write_bytes(DAMAGED[name])

    with pytest.raises(UnreadableInput) as caught:
        rows_of(tmp_path / name, text)

    assert name in caught.value.message
    assert caught.value.context["file"] == str(tmp_path / name)


def test_a_row_with_too_few_fields_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n"1\n1",2\n\n3\n')

    with pytest.raises(UnreadableInput, match="row 2, line 5: 1 fields, the header has 2"):
        rows_of(tmp_path / "t.csv", "a string, b int")


CSV_VALUES: list[tuple[str, str, Any]] = [
    ("string", "007", "007"),
    ("string", "", None),
    ("string", '""', ""),
    ("string", "NULL", "NULL"),
    ("string", '"a,""b""\nc"', 'a,"b"\nc'),
    ("int", "-5", -5),
    ("int", "", None),
    ("int", '""', None),
    ("long", "007", 7),
    ("boolean", "TRUE", True),
    ("float", "0.1", 0.10000000149011612),
    ("double", "1e3", 1000.0),
    ("decimal(38,30)", "5", Decimal(5)),
    ("decimal(5,2)", "1.10", Decimal("1.10")),
    ("date", "0001-01-01", date(1, 1, 1)),
    ("binary", base64.b64encode(b"\x00\xff").decode(), b"\x00\xff"),
    ("uuid", "00000000-0000-0000-0000-000000000001", b"\x00" * 15 + b"\x01"),
    ("list<int>", '"[1, null]"', [1, None]),
    ("struct<x: decimal(5,2)>", '"{""x"": 1.10}"', {"x": Decimal("1.10")}),
]


@pytest.mark.parametrize(("kind", "field", "value"), CSV_VALUES)
def test_a_csv_field_is_read_as_its_columns_type(
    tmp_path: Path, kind: str, field: str, value: Any
) -> None:
    (tmp_path / "t.csv").write_text(f"k,c\n1,{field}\n")

    assert rows_of(tmp_path / "t.csv", f"k int, c {kind}") == [{"k": 1, "c": value}]


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("int", "abc"),
        ("int", "1.5"),
        ("int", "0x10"),
        ("int", " 1"),
        ("byte", "300"),
        ("float", "1e300"),
        ("double", "1,5"),
        ("boolean", "yes"),
        ("decimal(5,2)", "1.234"),
        ("decimal(38,30)", "4611686018427387904"),
        ("date", "31.01.2024"),
        ("timestamp", "2024-01-31T13:00:00"),
        ("timestamp_ntz", "2024-01-31T13:00:00Z"),
        ("timestamp_ntz", "2024-01-31T13:00:00.1234567"),
        ("time", "25:00"),
        ("uuid", "abc"),
        ("binary", "???"),
        ("list<int>", "[1"),
        ("list<int>", "5"),
    ],
)
def test_a_csv_field_that_does_not_fit_is_named(tmp_path: Path, kind: str, field: str) -> None:
    quoted = '"' + field + '"'
    (tmp_path / "t.csv").write_text(f"k,c\n1,\n2,{quoted}\n")

    with pytest.raises(SchemaMismatch) as caught:
        rows_of(tmp_path / "t.csv", f"k int, c {kind}")

    assert "t.csv: row 2, line 3, column 'c'" in caught.value.message
    assert field in caught.value.message
    assert caught.value.hint


def test_a_csv_without_a_schema_is_guessed_by_arrow(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c\n1,x,2024-01-31\n2,,2024-02-01\n")

    batches = read_files(tmp_path / "t.csv")

    kinds = [str(f.type) for f in fields_from_arrow(batches.schema)]
    assert kinds == ["long", "string", "date"]


def test_csv_columns_match_names_and_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbfB,a\r\nx,1\r\n")

    assert rows_of(tmp_path / "t.csv", "a int, b string, c int") == [{"a": 1, "b": "x", "c": None}]
    with pytest.raises(SchemaMismatch, match="no column 'B'"):
        rows_of(tmp_path / "t.csv", "a int")


def test_a_blank_line_of_a_single_column_is_a_null(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n\n3\n")

    assert rows_of(tmp_path / "t.csv", "a int") == [{"a": 1}, {"a": None}, {"a": 3}]


def test_json_numbers_keep_all_their_digits(tmp_path: Path) -> None:
    text = '{"d": 12345678901234567890.1234567890, "i": 9223372036854775807, "f": 0.1, "s": "1"}'
    (tmp_path / "t.jsonl").write_text(text)

    (row,) = rows_of(tmp_path / "t.jsonl", "d decimal(38,10), i long, f double, s string")

    assert row == {
        "d": Decimal("12345678901234567890.1234567890"),
        "i": 9223372036854775807,
        "f": 0.1,
        "s": "1",
    }


def test_json_reads_from_text_what_it_cannot_write(tmp_path: Path) -> None:
    row = {"d": "2024-01-31", "t": "2024-01-31T13:00:00+01:00", "n": "2024-01-31", "m": "1.50"}
    (tmp_path / "t.jsonl").write_text(json.dumps(row))

    (found,) = rows_of(tmp_path / "t.jsonl", "d date, t timestamp, n timestamp_ntz, m decimal(5,2)")

    assert found["d"] == date(2024, 1, 31)
    assert found["t"].isoformat() == "2024-01-31T12:00:00+00:00"
    assert found["n"].isoformat() == "2024-01-31T00:00:00"
    assert found["m"] == Decimal("1.50")


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("t.jsonl", '{"a": 1}\n\n{"a": "2"}\n', 3),
        ("t.json", '[\n{"a": 1},\n\n{"a":\n "2"}]', 4),
        ("t.json", '{"a": "2"}', 1),
        ("t.jsonl", '{"a": 1}\n5\n', 2),
    ],
)
def test_a_json_value_that_does_not_fit_is_named_with_its_line(
    tmp_path: Path, name: str, content: str, line: int
) -> None:
    (tmp_path / name).write_text(content)

    with pytest.raises(SchemaMismatch, match=rf"{name}: line {line}\b"):
        rows_of(tmp_path / name, "a int")


def test_one_object_is_one_row(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"a": 1, "b": "x"}')

    assert rows_of(tmp_path / "t.json", "a int, b string") == [{"a": 1, "b": "x"}]
    assert rows_of(tmp_path / "t.json") == [{"a": 1, "b": "x"}]


def test_an_empty_array_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("[]")

    assert rows_of(tmp_path / "t.json", "a int") == []


def test_large_json_arrays_are_read_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakebed.engines.arrow.json_in._BLOCK_BYTES", 7)
    rows = [{"a": n, "b": "é" * n} for n in range(50)]
    (tmp_path / "t.json").write_text(json.dumps(rows, ensure_ascii=False, indent=2))
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(row) for row in rows))

    assert rows_of(tmp_path / "t.json", "a int, b string") == rows
    assert rows_of(tmp_path / "t.jsonl", "a int, b string") == rows


def test_a_large_file_is_read_while_it_is_consumed(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + "1,xxxxxxxxxxxxxxxxxxxx\n" * 1_000_000)
    before = pa.total_allocated_bytes()

    most = 0
    for _ in read_files(tmp_path / "t.csv", schema=schema_of("a int, b string")):
        most = max(most, pa.total_allocated_bytes() - before)

    assert 0 < most < 32 * 2**20


def test_a_later_bad_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    (tmp_path / "b.csv").write_text("a\nx\n")

    with pytest.raises(SchemaMismatch, match=r"b\.csv: row 1, line 2"):
        rows_of(f"{tmp_path}/*.csv", "a int")


def test_text_in_json_stays_text_whatever_it_looks_like(tmp_path: Path) -> None:
    moments = ["2024-05-01T10:00:00Z", "2024-05-01", "2024-05-01T10:00:00+02:00"]
    lines = [json.dumps({"at": m, "in": {"at": [m]}, "n": 1}) for m in moments]
    (tmp_path / "m.jsonl").write_text("\n".join(lines))

    found = pa.Table.from_batches(list(read_files([str(tmp_path / "m.jsonl")])))

    assert found["at"].to_pylist() == moments
    assert [row["at"] for row in found["in"].to_pylist()] == [[m] for m in moments]
    assert found["n"].to_pylist() == [1, 1, 1]
