"""What both demonstrations share: a story that is told and compared, and engines of others."""

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

READERS: dict[str, Callable[[str], Any]] = {
    "deltalake": lambda folder: DeltaTable(folder).to_pyarrow_table(),
    "PyIceberg": lambda folder: StaticTable.from_metadata(folder).scan().to_arrow(),
    "Polars, as Delta": lambda folder: pl.scan_delta(folder).collect().to_arrow(),
    "Polars, as Iceberg": lambda folder: (
        pl.scan_iceberg(StaticTable.from_metadata(folder)).collect().to_arrow()
    ),
}


@dataclass
class Story:
    """Tells what happens and remembers which comparisons failed."""

    failed: list[str] = field(default_factory=list)
    compared: int = 0

    def chapter(self, title: str) -> None:
        print(f"\n{title}", flush=True)

    def tell(self, what: str, figure: object) -> None:
        shown = f"{figure:,}" if isinstance(figure, int) else str(figure)
        print(f"  {what:<58} {shown:>14}", flush=True)

    def compare(self, what: str, found: object, expected: object) -> None:
        self.compared += 1
        if found == expected:
            self.tell(what, found)
        else:
            self.tell(what, f"{found} instead of {expected}")
            self.failed.append(what)


def run(play: Callable[[Path, Story], None]) -> int:
    """Play it in the folder that the command line names, else in one that is thrown away."""
    kept = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    folder = kept or Path(tempfile.mkdtemp(prefix="lakebed-demo-"))
    story, started_s = Story(), time.perf_counter()
    try:
        play(folder, story)
    finally:
        if kept is None:
            shutil.rmtree(folder, ignore_errors=True)
    took = f"{story.compared} comparisons in {time.perf_counter() - started_s:.1f} s"
    if story.failed:
        print(f"\n{took}; FAILED: {'; '.join(story.failed)}")
        return 1
    print(f"\n{took}, all equal." + (f" The lake is in {kept}." if kept else ""))
    return 0
