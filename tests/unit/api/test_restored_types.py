"""Restores to before a column was widened: files with wider values go, and every reader follows."""

from decimal import Decimal
from pathlib import Path

from pyiceberg.table import StaticTable

import lakebed


def test_wide_values_go_and_both_formats_follow(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table(
            "s.t", "id long, a int, f float, p decimal(5,2)", partition_by=["p"]
        )
        table.append([{"id": 1, "a": 1, "f": 1.0, "p": Decimal("1.50")}])
        alter = table.alter().widen_column("a", "long").widen_column("f", "double")
        alter.widen_column("p", "decimal(20,2)").commit()
        table.append([{"id": 2, "a": 2**40, "f": 1e300, "p": Decimal("12345678901.50")}])

        commit = table.restore(version=1)

        assert commit.published, commit.reason
        hint = (Path(table.location) / "metadata/version-hint.text").read_text()
        shown = StaticTable.from_metadata(f"{table.location}/metadata/{hint}.metadata.json")
        assert [row["id"] for row in shown.scan().to_arrow().to_pylist()] == [1]
        assert table.append([{"id": 3, "p": Decimal("2.50")}]).published
        assert lake.check().clean


def test_queries_scans_and_tables_are_sources_of_rows(tmp_path: Path) -> None:
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        source = lake.create_table("s.a", "id long, v string")
        source.append([{"id": 1, "v": "x"}, {"id": 2, "v": "y"}])
        table = lake.create_table("s.b", "id long, v string")

        table.append(lake.sql("SELECT id, v FROM s.a WHERE id = 1"))
        table.append(source.scan(where="id = 2"))
        table.append(source)
        table.merge(
            lake.sql("SELECT 9::BIGINT AS id, 'z' AS v"), "t.id = s.id"
        ).when_not_matched_insert_all().execute()

        assert sorted(row["id"] for row in table.to_arrow().to_pylist()) == [1, 1, 2, 2, 9]
