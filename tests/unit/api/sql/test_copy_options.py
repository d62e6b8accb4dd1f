"""Options and columns of COPY: how files are written, and what each format can be told."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakebed import Lake, LakebedError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def empty(lake: Lake) -> Lake:
    lake.sql("CREATE TABLE s.u (id BIGINT, name TEXT DEFAULT 'none', n INT)")
    return lake


def rows(lake: Lake) -> list[tuple[object, ...]]:
    return [tuple(r.values()) for r in lake.sql("SELECT * FROM s.u ORDER BY id").to_pylist()]


@pytest.mark.parametrize(
    ("text", "statement", "expected"),
    [
        ("id;n\n1;2\n", "COPY s.u FROM 'f.csv' (DELIMITER ';')", [(1, "none", 2)]),
        ("x;y\n1;a\n", "COPY s.u (id, name) FROM 'f.csv' (HEADER, SEP ';')", [(1, "a", None)]),
        (
            "1,a\n2,b\n",
            "COPY s.u (id, name) FROM 'f.csv' (HEADER false)",
            [(1, "a", None), (2, "b", None)],
        ),
        ("1,a,3\n", "COPY s.u FROM 'f.csv' WITH (HEADER off)", [(1, "a", 3)]),
        (
            "id,name\n1,NA\n2,\n",
            "COPY s.u FROM 'f.csv' (NULLSTR 'NA')",
            [(1, None, None), (2, "", None)],
        ),
        (
            "id,name\n1,NA\n2,\n",
            "COPY s.u FROM 'f.csv' (NULL ['NA', ''])",
            [(1, None, None), (2, None, None)],
        ),
        ("note\nid,n\n1,2\n", "COPY s.u FROM 'f.csv' (SKIP 1)", [(1, "none", 2)]),
        ("id,name\n1,'a,b'\n", "COPY s.u FROM 'f.csv' (QUOTE '''')", [(1, "a,b", None)]),
        ('id,name\n1,"a\\"b"\n', "COPY s.u FROM 'f.csv' (ESCAPE '\\')", [(1, 'a"b', None)]),
        (
            "id\tname\n1\ta\n",
            "COPY s.u FROM 'f.csv' (DELIM '\\t', ENCODING 'utf-8')",
            [(1, "a", None)],
        ),
        ("id|n\n1|2\n", "COPY s.u FROM 'f.txt' (FORMAT csv, DELIMITER '|')", [(1, "none", 2)]),
    ],
)
def test_csv_is_read_as_it_is_written(
    empty: Lake, folder: Path, text: str, statement: str, expected: list[tuple[object, ...]]
) -> None:
    for name in ("f.csv", "f.txt"):
        (folder / name).write_text(text)

    empty.sql(statement, allow_files=[folder])

    assert rows(empty) == expected


@pytest.mark.parametrize("form", ["parquet", "arrow", "jsonl"])
def test_columns_of_other_files_are_chosen_by_name(empty: Lake, folder: Path, form: str) -> None:
    empty.sql(
        f"COPY (SELECT 5 AS n, 1::BIGINT AS id, 'x' AS name) TO 'f.{form}'", allow_files=[folder]
    )

    empty.sql(f"COPY s.u (id, n) FROM 'f.{form}'", allow_files=[folder])

    assert rows(empty) == [(1, "none", 5)]


@pytest.mark.parametrize(
    ("statement", "code", "said"),
    [
        ("COPY s.u FROM 'f.csv' (DELIMITR ';')", "SQL_UNSUPPORTED", "DELIMITER"),
        ("COPY s.u FROM 'f.csv' (DELIMITER ';;')", "SQL_UNSUPPORTED", "one ASCII"),
        ("COPY s.u FROM 'f.csv' (DELIMITER ';', SEP ',')", "SQL_UNSUPPORTED", "leave one"),
        ("COPY s.u FROM 'f.csv' (HEADER maybe)", "SQL_UNSUPPORTED", "true or false"),
        ("COPY s.u FROM 'f.csv' (SKIP -1)", "SQL_UNSUPPORTED", "number of lines"),
        ("COPY s.u FROM 'f.csv' (ENCODING 'latin1')", "SQL_UNSUPPORTED", "UTF-8"),
        ("COPY s.u FROM 'f.csv' (NULLSTR 5)", "SQL_UNSUPPORTED", "list of texts"),
        ("COPY s.u FROM 'f.parquet' (HEADER)", "SQL_UNSUPPORTED", "FORMAT"),
        ("COPY s.u (nope) FROM 'f.csv'", "SQL_UNKNOWN_COLUMN", "columns are"),
        ("COPY s.u (id, ID) FROM 'f.csv'", "SQL_UNSUPPORTED", "COPY t (a, b)"),
        ("COPY s.u (id) FROM 'f.csv'", "UNREADABLE_INPUT", ""),
        ("COPY s.u (id, name) FROM 'f.parquet'", "SCHEMA_MISMATCH", "columns are"),
        ("COPY s.u TO 'o.csv' (QUOTE 'x')", "SQL_UNSUPPORTED", "HEADER, DELIMITER"),
        ("COPY s.u TO 'o.parquet' (COMPRESSION 'brot')", "SQL_UNSUPPORTED", "zstd"),
        ("COPY s.u TO 'o.jsonl' (HEADER)", "SQL_UNSUPPORTED", "FORMAT"),
    ],
)
def test_an_option_that_is_not_known_is_refused_with_those_that_are(
    empty: Lake, folder: Path, statement: str, code: str, said: str
) -> None:
    (folder / "f.csv").write_text("id,name\n1,a\n")
    pq.write_table(pa.table({"id": [1]}), folder / "f.parquet")

    with pytest.raises(LakebedError) as refused:
        empty.sql(statement, allow_files=[folder])

    assert refused.value.code == code
    assert said in refused.value.hint
    assert rows(empty) == []
    assert sorted(p.name for p in folder.iterdir() if p.is_file()) == ["f.csv", "f.parquet"]


def test_a_bad_field_is_named_by_row_and_line(empty: Lake, folder: Path) -> None:
    (folder / "f.csv").write_text("comment\n1;a\nx;b\n")
    with pytest.raises(LakebedError, match=r"row 2, line 3, column 'id'"):
        empty.sql(
            "COPY s.u (id, name) FROM 'f.csv' (HEADER false, SKIP 1, DELIMITER ';')",
            allow_files=[folder],
        )
    (folder / "f.csv").write_text("1;a\n2;b;c\n")
    with pytest.raises(LakebedError, match=r"row 2, line 2: 3 fields"):
        empty.sql(
            "COPY s.u (id, name) FROM 'f.csv' (HEADER false, DELIMITER ';')", allow_files=[folder]
        )


def test_files_are_written_as_they_are_wanted(empty: Lake, folder: Path) -> None:
    empty.sql("INSERT INTO s.u VALUES (1, 'a', NULL)")

    empty.sql("COPY s.u TO 'o.csv' (HEADER false, DELIMITER ';')", allow_files=[folder])
    empty.sql("COPY s.u TO 'o.parquet' (COMPRESSION snappy)", allow_files=[folder])

    assert (folder / "o.csv").read_text() == '1;"a";\n'
    assert (
        pq.ParquetFile(folder / "o.parquet").metadata.row_group(0).column(0).compression == "SNAPPY"
    )


def test_copy_inside_a_transaction_takes_options_too(empty: Lake, folder: Path) -> None:
    (folder / "f.csv").write_text("1;a\n")
    with empty.sql_session(allow_files=[folder]) as session:
        session.sql("BEGIN")
        session.sql("COPY s.u (id, name) FROM 'f.csv' (HEADER false, DELIMITER ';')")
        session.sql("COMMIT")

    assert rows(empty) == [(1, "a", None)]
