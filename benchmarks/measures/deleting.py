"""Deleting from a table of numbers, by lakebed and by deltalake."""

from pathlib import Path

from benchmarks.data import numbers
from benchmarks.measure import Call, Case, Fact, files_below


class LakebedDelete:
    environment = "lakebed"
    owner = "lakebed"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import lakebed

        with lakebed.open(folder, create=True) as lake:
            rows = numbers(case.sizes["rows"])
            lake.create_table("bench.numbers", rows.schema).append(rows)

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import lakebed

        lake = lakebed.open(folder)
        table = lake.table("bench.numbers")
        before = len(list(files_below(folder)))

        def facts(_: object) -> dict[str, Fact]:
            rows = table.scan(columns=["id"]).to_arrow().num_rows
            return {"rows": rows, "files_added": len(list(files_below(folder))) - before}

        return Call(lambda: table.delete(case.text), facts)


class DeltalakeDelete:
    environment = "peers"
    owner = "deltalake"

    def make(self, folder: Path, case: Case, data: Path) -> None:
        import deltalake

        deltalake.write_deltalake(folder, numbers(case.sizes["rows"]))

    def open(self, folder: Path, case: Case, data: Path) -> Call:
        import deltalake

        table = deltalake.DeltaTable(folder)
        before = len(list(files_below(folder)))

        def facts(_: object) -> dict[str, Fact]:
            counts = deltalake.DeltaTable(folder).get_add_actions(flatten=True)
            rows = sum(counts.column("num_records").to_pylist())
            return {"rows": rows, "files_added": len(list(files_below(folder))) - before}

        return Call(lambda: table.delete(case.text), facts)
