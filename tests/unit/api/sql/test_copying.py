"""COPY: files only inside allowed folders, round trips, nothing left behind."""

from pathlib import Path

import pytest

from lakebed import Lake, LakebedError

_REFUSED = ("FORBIDDEN", "INVALID_INPUT", "UNREADABLE_INPUT")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    inside = tmp_path / "allowed"
    inside.mkdir()
    (tmp_path / "outside.csv").write_text("id,name\n9,secret\n")
    monkeypatch.chdir(inside)
    return inside


def code_of(lake: Lake, text: str, *folders: Path | str) -> str:
    with pytest.raises(LakebedError) as caught:
        lake.sql(text, allow_files=folders).to_arrow()
    assert caught.value.hint
    return caught.value.code


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "parquet", "arrow"])
def test_rows_go_to_a_file_and_come_back(lake: Lake, folder: Path, form: str) -> None:
    lake.sql("CREATE TABLE s.u (id BIGINT NOT NULL, name TEXT, ts TIMESTAMP)")

    written = lake.sql(f"COPY s.t TO 'rows.{form}'", allow_files=[folder])
    lake.sql(f"COPY s.u FROM '{folder}/rows.{form}'", allow_files=[folder])

    assert written.to_pylist() == [{"rows": 3}]
    both = "SELECT * FROM s.t EXCEPT ALL SELECT * FROM s.u"
    assert lake.sql(both).to_pylist() == []
    assert [p.name for p in folder.iterdir()] == [f"rows.{form}"]


def test_format_is_named_or_known_by_the_suffix(lake: Lake, folder: Path) -> None:
    lake.sql("COPY (SELECT 1 AS id) TO 'rows' (FORMAT csv)", allow_files=[folder])

    assert (folder / "rows").read_text() == '"id"\n1\n'
    assert code_of(lake, "COPY s.t TO 'rows.weird'", folder) == "SQL_UNSUPPORTED"
    assert code_of(lake, "COPY s.t FROM 'rows' (FORMAT weird)", folder) == "INVALID_INPUT"


def test_files_outside_of_the_folders_are_out_of_reach(lake: Lake, folder: Path) -> None:
    (folder / "link.csv").symlink_to(folder.parent / "outside.csv")
    (folder / "up").symlink_to(folder.parent)
    before = lake.table("s.t").version
    for path in (
        "../outside.csv",
        str(folder.parent / "outside.csv"),
        "link.csv",
        "up/outside.csv",
        "u?/outside.csv",
        "lin?.csv",
        "*.csv",
        "/etc/passwd",
    ):
        for text in (f"COPY s.t FROM '{path}' (FORMAT csv)", f"COPY s.t TO '{path}' (FORMAT csv)"):
            if path in ("*.csv", "lin?.csv") and " TO " in text:
                continue  # a name like any other
            with pytest.raises(LakebedError) as caught:
                lake.sql(text, allow_files=[folder]).to_arrow()
            assert caught.value.code in _REFUSED, text
            assert "secret" not in str(caught.value)

    assert lake.table("s.t").version == before
    assert (folder.parent / "outside.csv").read_text() == "id,name\n9,secret\n"


def test_without_folders_nothing_is_allowed(lake: Lake, folder: Path) -> None:
    assert code_of(lake, "COPY s.t TO 'x.csv'") == "FORBIDDEN"
    assert code_of(lake, "COPY s.t TO 'x.csv'", "") == "FORBIDDEN"


def test_text_names_one_folder_not_its_letters(lake: Lake, folder: Path) -> None:
    with pytest.raises(LakebedError) as caught:
        lake.sql("COPY s.t TO '/tmp/x.csv'", allow_files=str(folder))
    assert caught.value.code == "FORBIDDEN"
    lake.sql("COPY s.t TO 'x.csv'", allow_files=str(folder))
    assert (folder / "x.csv").exists()


def test_pattern_reads_every_allowed_file(lake: Lake, folder: Path) -> None:
    (folder / "1.csv").write_text("id,name\n10,x\n")
    (folder / "2.csv").write_text("id,name\n11,y\n")

    lake.sql("COPY s.t FROM '*.csv'", allow_files=[folder])

    assert lake.sql("SELECT count(*) AS n FROM s.t").to_pylist() == [{"n": 5}]
    assert code_of(lake, "COPY s.t FROM '*.json'", folder) == "UNREADABLE_INPUT"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("COPY s.t TO 'none/x.csv'", "INVALID_INPUT"),
        ("COPY s.t TO '.' (FORMAT csv)", "INVALID_INPUT"),
        ("COPY s.t TO ''", "INVALID_INPUT"),
        ("COPY s.t FROM 'none.csv'", "UNREADABLE_INPUT"),
        ("COPY s.t FROM '.'", "UNREADABLE_INPUT"),
        ("COPY s.nope TO 'x.csv'", "TABLE_NOT_FOUND"),
        ("COPY (SELECT nope FROM s.t) TO 'x.csv'", "SQL_UNKNOWN_COLUMN"),
        ("COPY (SELECT id // (id - 3) FROM s.t) TO 'x.csv'", "DIVISION_BY_ZERO"),
        ("COPY (SELECT 1 AS a, 2 AS a) TO 'x.json'", "INVALID_INPUT"),
        ("COPY (SELECT INTERVAL 1 DAY AS i) TO 'x.parquet'", "UNSUPPORTED_FEATURE"),
        ("COPY s.t TO 'x.csv' (HEADER sometimes)", "SQL_UNSUPPORTED"),
        ("COPY s.t TO 'y.csv.gz'", "SQL_UNSUPPORTED"),
        ("COPY s.t (nope) FROM 'x.csv'", "SQL_UNKNOWN_COLUMN"),
    ],
)
def test_failed_copy_leaves_nothing_behind(lake: Lake, folder: Path, text: str, code: str) -> None:
    (folder / "x.csv").write_text("kept")
    before = lake.table("s.t").version

    assert code_of(lake, text, folder) == code

    assert [p.name for p in folder.iterdir()] == ["x.csv"]
    assert (folder / "x.csv").read_text() == "kept"
    assert lake.table("s.t").version == before


def test_files_of_the_lake_itself_are_not_written(lake: Lake, tmp_path: Path) -> None:
    for path in ("lakebed.db", "lakebed.db.lock", "warehouse/s/x.csv"):
        text = f"COPY s.t TO '{tmp_path}/lake/{path}' (FORMAT csv)"
        assert code_of(lake, text, tmp_path) == "FORBIDDEN"
    assert lake.check().clean


def test_copy_is_part_of_a_transaction(lake: Lake, folder: Path) -> None:
    (folder / "in.csv").write_text("id,name\n10,x\n")
    with lake.sql_session(allow_files=[folder]) as session:
        session.sql("BEGIN; COPY s.t FROM 'in.csv'")
        session.sql("COPY s.t TO 'out.csv'")
        session.sql("ROLLBACK")

    assert len((folder / "out.csv").read_text().splitlines()) == 5
    assert lake.sql("SELECT count(*) AS n FROM s.t").to_pylist() == [{"n": 3}]
    assert lake.check().clean
