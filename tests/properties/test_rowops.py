"""Random changes of rows: a lake and a plain list of rows say the same after every step.

The lake takes every path: vectors and rewritten files, our own predicates and the engine's,
transactions over several changes, partitioned or not. At the end the check is clean.
"""

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run

import lakebed
from lakebed.model.errors import AmbiguousMerge

SCHEMA = "k long not null, p string, n int"
IDS = st.integers(0, 15)
PARTS = st.sampled_from([None, "a", "b"])
NUMBERS = st.one_of(st.none(), st.integers(-3, 3))
ROW = st.fixed_dictionaries({"k": IDS, "p": PARTS, "n": NUMBERS})
ROWS = st.lists(ROW, min_size=1, max_size=6)
KEYED = st.lists(ROW, min_size=1, max_size=6, unique_by=lambda row: row["k"])
MODES = st.sampled_from(["merge-on-read", "copy-on-write"])
Row = dict[str, Any]

# Conditions as SQL and as Python with SQL's three values; some only the engine understands.
CONDITIONS = {
    "k < 8": lambda r: r["k"] < 8,
    "n > 0": lambda r: None if r["n"] is None else r["n"] > 0,
    "NOT (n > 0)": lambda r: None if r["n"] is None else not r["n"] > 0,
    "p = 'a'": lambda r: None if r["p"] is None else r["p"] == "a",
    "p IS NULL": lambda r: r["p"] is None,
    "p = 'a' AND n = 1": lambda r: _and(_eq(r["p"], "a"), _eq(r["n"], 1)),
    "n + k > 10": lambda r: None if r["n"] is None else r["n"] + r["k"] > 10,
    "coalesce(p, 'z') > 'a' AND k > 3": lambda r: (r["p"] or "z") > "a" and r["k"] > 3,
    "TRUE": lambda r: True,
    "k = 99": lambda r: False,
}


def _eq(value: object, other: object) -> bool | None:
    return None if value is None else value == other


def _and(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def chosen(condition: str, row: Row) -> bool:
    return CONDITIONS[condition](row) is True  # type: ignore[no-untyped-call]


def plus(value: int | None) -> int | None:
    return None if value is None else value + 1


def shown(rows: list[Row]) -> list[tuple[str, ...]]:
    return sorted(tuple(repr(row[name]) for name in ("k", "p", "n")) for row in rows)


def merged(rows: list[Row], source: list[Row]) -> list[Row] | None:
    """Matched: deleted if the source's n is 0, else n grows; not matched: inserted. None: error."""
    result, met = [], set()
    for row in rows:
        ours = [s for s in source if s["k"] == row["k"]]
        met |= {s["k"] for s in ours}
        if len(ours) > 1:
            return None
        if not ours:
            result.append(row)
        elif ours[0]["n"] != 0:
            result.append(row | {"n": ours[0]["n"], "p": row["p"]})
    return result + [s for s in source if s["k"] not in met]


class Rows(RuleBasedStateMachine):
    @initialize(partitioned=st.booleans(), upgrade=st.sampled_from(["auto", "never"]))
    def begin(self, partitioned: bool, upgrade: str) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.lake = lakebed.open(Path(self.folder.name, "lake"), create=True)
        self.table = self.lake.create_table(
            "a.t",
            SCHEMA,
            partition_by=["p"] if partitioned else [],
            properties={"lakebed.upgrade": upgrade},
        )
        self.rows: list[Row] = []
        self.transaction: lakebed.Transaction | None = None
        self.before: list[Row] = []

    def teardown(self) -> None:
        if hasattr(self, "lake"):
            try:
                if self.transaction is not None:
                    self.transaction.rollback()
                    self.rows = self.before
                assert self.lake.publish().lags == ()  # a checkpoint may be under way
                check = self.lake.check()
                assert (check.findings, check.notes) == ([], [])
            finally:
                self.lake.close()
                self.folder.cleanup()

    def write(self, kind: str, *given: Any, mode: str = "merge-on-read") -> None:
        """In the transaction if one is open, else as a commit of its own."""
        if self.transaction is not None:
            getattr(self.transaction.table("a.t"), kind)(*given)
            return
        modes = {f"write.{name}.mode": mode for name in ("delete", "update", "merge")}
        getattr(self.table, kind)(*given, settings=modes)

    @rule(rows=ROWS)
    def append(self, rows: list[Row]) -> None:
        self.write("append", rows)
        self.rows = self.rows + rows

    @rule(where=st.sampled_from(list(CONDITIONS)), mode=MODES)
    def delete(self, where: str, mode: str) -> None:
        self.write("delete", where, mode=mode)
        self.rows = [r for r in self.rows if not chosen(where, r)]

    @rule(where=st.sampled_from(list(CONDITIONS)), mode=MODES)
    def update(self, where: str, mode: str) -> None:
        self.write("update", {"n": "n + 1", "p": "nullif(p, 'b')"}, where, mode=mode)
        self.rows = [
            r | {"n": plus(r["n"]), "p": None if r["p"] == "b" else r["p"]}
            if chosen(where, r)
            else r
            for r in self.rows
        ]

    @rule(source=ROWS, mode=MODES)
    def merge(self, source: list[Row], mode: str) -> None:
        expected = merged(self.rows, source)
        inside = self.transaction
        table: Any = self.table if inside is None else inside.table("a.t")
        options: dict[str, Any] = {}
        if inside is None:
            options["settings"] = {"write.merge.mode": mode}
        merge = table.merge(source, "t.k = s.k").when_matched_delete("s.n = 0")
        merge.when_matched_update({"n": "s.n"}).when_not_matched_insert_all()
        with pytest.raises(AmbiguousMerge) if expected is None else nullcontext():
            merge.execute(**options)
        self.rows = self.rows if expected is None else expected

    @rule(source=KEYED, mode=MODES)
    def replace_by_key(self, source: list[Row], mode: str) -> None:
        """A change stream; an even n stands for a deletion."""
        changes = [
            r | {"_op": "D" if r["n"] is not None and r["n"] % 2 == 0 else "U"} for r in source
        ]
        gone = {c["k"] for c in changes if c["_op"] == "D"}
        new = {r["k"]: r for r in source if r["k"] not in gone}
        kept = [new.get(r["k"], r) for r in self.rows if r["k"] not in gone]
        there = {r["k"] for r in self.rows}
        target: Any = self.table
        options: dict[str, Any] = {"settings": {"write.merge.mode": mode}}
        if self.transaction is not None:
            target, options = self.transaction.table("a.t"), {}
        target.apply_changes(changes, key="k", **options)
        self.rows = kept + [r for r in new.values() if r["k"] not in there]

    @rule(where=st.sampled_from(list(CONDITIONS)), rows=ROWS)
    def overwrite(self, where: str, rows: list[Row]) -> None:
        fitting = [r for r in rows if chosen(where, r)]
        target: Any = self.table if self.transaction is None else self.transaction.table("a.t")
        target.overwrite(fitting, where=where)
        self.rows = [r for r in self.rows if not chosen(where, r)] + fitting

    @rule()
    def truncate(self) -> None:
        self.write("truncate")
        self.rows = []

    @precondition(lambda self: self.transaction is None)
    @rule()
    def open_transaction(self) -> None:
        self.transaction = self.lake.transaction()
        self.before = list(self.rows)

    @precondition(lambda self: self.transaction is not None)
    @rule(keep=st.booleans())
    def end_transaction(self, keep: bool) -> None:
        assert self.transaction is not None
        if keep:
            self.transaction.__exit__(None, None, None)
        else:
            self.transaction.rollback()
            self.rows = self.before
        self.transaction = None

    @invariant()
    def rows_are_the_same(self) -> None:
        if not hasattr(self, "lake"):
            return
        inside = self.transaction
        source: Any = self.table if inside is None else inside.table("a.t")
        assert shown(source.scan().to_arrow().to_pylist()) == shown(self.rows)
        outside = self.rows if inside is None else self.before
        assert self.table.row_count == len(outside)


def test_random_changes_of_rows_agree_with_a_list() -> None:
    run(
        Rows,
        settings=settings(
            max_examples=25,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
