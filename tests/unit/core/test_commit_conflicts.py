"""What may follow what: the rules of DESIGN 5, by transactions that overlap."""

from collections.abc import Callable, Iterator

import pytest

import lakebed
from lakebed.core.commit import Committer
from lakebed.model.changes import Proposal

SCHEMA = "id long not null, part string"
Change = Callable[[lakebed.Transaction], None]


@pytest.fixture
def lake() -> Iterator[lakebed.Lake]:
    with lakebed.open(":memory:", settings={"publish.formats": "delta"}) as lake:
        lake.create_table("a.t", SCHEMA, partition_by=["part"])
        lake.table("a.t").append(rows(1))
        lake.create_table("a.other", SCHEMA)
        yield lake


def rows(*ids: int, part: str = "x") -> list[dict[str, object]]:
    return [{"id": i, "part": part} for i in ids]


def append(tx: lakebed.Transaction) -> None:
    tx.table("a.t").append(rows(2))


def overwrite(tx: lakebed.Transaction) -> None:
    tx.table("a.t").overwrite(rows(3))


def overwrite_x(tx: lakebed.Transaction) -> None:
    tx.table("a.t").overwrite(rows(3), where="part = 'x'")


def overwrite_y(tx: lakebed.Transaction) -> None:
    tx.table("a.t").overwrite(rows(4, part="y"), where="part = 'y'")


def append_y(tx: lakebed.Transaction) -> None:
    tx.table("a.t").append(rows(5, part="y"))


def properties(tx: lakebed.Transaction) -> None:
    tx.table("a.t").set_properties({"k": "v"})


# (ours, theirs, ids when ours may follow under write_serializable, and under serializable)
RULES: list[tuple[Change, Change, list[int] | None, list[int] | None]] = [
    (append, append, [1, 2, 2], [1, 2, 2]),
    (append, overwrite, [2, 3], [2, 3]),
    (append, properties, [1, 2], [1, 2]),
    (overwrite, append, [2, 3], None),
    (overwrite, overwrite, None, None),
    (overwrite_x, append, [2, 3], None),
    (overwrite_x, append_y, [3, 5], [3, 5]),
    (overwrite_x, overwrite_y, [3, 4], [3, 4]),
    (overwrite_x, overwrite_x, None, None),
    (overwrite_x, overwrite, None, None),
    (overwrite, properties, [3], [3]),
    (properties, append, [1, 2], [1, 2]),
    (properties, properties, None, None),
]


@pytest.mark.parametrize("isolation", ["write_serializable", "serializable"])
@pytest.mark.parametrize(
    ("ours", "theirs", "passes", "strictly"),
    RULES,
    ids=[f"{o.__name__}-after-{t.__name__}" for o, t, _, _ in RULES],
)
def test_a_change_follows_another_only_by_the_rules(
    lake: lakebed.Lake,
    ours: Change,
    theirs: Change,
    passes: list[int] | None,
    strictly: list[int] | None,
    isolation: str,
) -> None:
    expected = passes if isolation == "write_serializable" else strictly
    first = lake.transaction(isolation=isolation)
    ours(first)
    with lake.transaction() as second:
        theirs(second)
    between = ids(lake)

    if expected is not None:
        first.commit()
        assert ids(lake) == expected
    else:
        with pytest.raises(lakebed.CommitConflict) as caught:
            first.commit()
        assert ids(lake) == between
        named = {"table": "a.t", "base": 1, "with_version": 2, "head": 2}
        assert caught.value.context == named
        assert "a.t: this change was made on version 1" in caught.value.message
        assert caught.value.hint
        assert lake.check().notes == [], "the files of a refused change are deleted"
    assert lake.check().clean


def test_two_overwrites_of_an_empty_table_conflict(lake: lakebed.Lake) -> None:
    first, second = lake.transaction(), lake.transaction()
    first.table("a.other").overwrite(rows(1))
    second.table("a.other").overwrite(rows(2))

    first.commit()

    with pytest.raises(lakebed.CommitConflict):
        second.commit()
    assert ids(lake, "a.other") == [1]


@pytest.mark.parametrize("isolation", ["write_serializable", "serializable"])
def test_what_was_read_must_still_hold_when_serializable(
    lake: lakebed.Lake, isolation: str
) -> None:
    tx = lake.transaction(isolation=isolation)
    total = tx.table("a.t").scan().to_arrow().num_rows
    tx.table("a.other").append(rows(total))
    lake.table("a.t").append(rows(2))

    if isolation == "serializable":
        with pytest.raises(lakebed.CommitConflict) as caught:
            tx.commit()
        assert (caught.value.context["table"], caught.value.context["head"]) == ("a.t", 2)
        assert ids(lake, "a.other") == []
    else:
        tx.commit()
        assert ids(lake, "a.other") == [1]


def test_a_table_sets_its_own_isolation(lake: lakebed.Lake) -> None:
    lake.table("a.t").set_properties({"commit.isolation": "serializable"})
    tx = lake.transaction()
    overwrite(tx)
    lake.table("a.t").append(rows(2))

    with pytest.raises(lakebed.CommitConflict):
        tx.commit()


def test_one_table_in_conflict_keeps_the_others_back(lake: lakebed.Lake) -> None:
    tx = lake.transaction()
    tx.table("a.other").append(rows(7))
    overwrite(tx)
    lake.table("a.t").overwrite(rows(9))

    with pytest.raises(lakebed.CommitConflict):
        tx.commit()

    assert (ids(lake, "a.other"), ids(lake)) == ([], [9])
    assert lake.table("a.other").version == 0


def test_a_transaction_sees_its_own_writes_and_nobody_else_does(lake: lakebed.Lake) -> None:
    with lake.transaction() as tx:
        table = tx.table("a.t")
        table.append(rows(2))
        lake.table("a.t").append(rows(8))
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2]
        assert ids(lake) == [1, 8]
        table.overwrite(rows(3))
        assert table.scan().to_arrow()["id"].to_pylist() == [3]

    assert ids(lake) == [3, 8]


def test_a_block_that_raises_leaves_nothing(lake: lakebed.Lake) -> None:
    def fail() -> None:
        with lake.transaction() as tx:
            tx.table("a.t").append(rows(2))
            tx.table("a.other").append(rows(2))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert (ids(lake), ids(lake, "a.other")) == ([1], [])
    assert lake.check().notes == []


def test_an_overwrite_is_placed_again_without_writing_its_rows_again(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, storage = lake.table("a.t"), lake._parts.storage
    opened: list[str] = []
    monkeypatch.setattr(
        type(storage), "open_output", recording(type(storage).open_output, opened), raising=True
    )
    interrupt_once(monkeypatch, lambda: table.overwrite(rows(9)))

    commit = table.overwrite(rows(3))

    assert (commit.version, ids(lake)) == (3, [3])
    assert len([path for path in opened if path.endswith(".parquet")]) == 2
    assert lake.check().notes == []


def test_without_retries_a_conflict_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    with lakebed.open(":memory:", settings={"commit.retries": 0}) as lake:
        table = lake.create_table("a.t", rows(1))
        interrupt_once(monkeypatch, lambda: table.overwrite(rows(9)))

        with pytest.raises(lakebed.CommitConflict):
            table.overwrite(rows(3))

        assert ids(lake) == [9]
        assert lake.check().notes == []


def test_rows_appended_meanwhile_are_overwritten_when_serializable(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.table("a.t")
    interrupt_once(monkeypatch, lambda: table.append(rows(9)))

    table.overwrite(rows(3), isolation="serializable")

    assert ids(lake) == [3]


def test_a_write_goes_to_its_table_though_the_name_means_another_by_now(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.table("a.t")

    def swap() -> None:
        table.overwrite(rows(9))
        lake.rename_table("a.t", "a.moved")
        lake.create_table("a.t", SCHEMA)

    interrupt_once(monkeypatch, swap)

    table.overwrite(rows(3))

    assert (ids(lake, "a.moved"), ids(lake)) == ([3], [])
    assert lake.check().clean


def test_an_append_follows_a_new_column(lake: lakebed.Lake) -> None:
    tx = lake.transaction()
    append(tx)
    lake.table("a.t").alter().add_column("note", "string").commit()

    tx.commit()

    notes = lake.table("a.t").to_arrow()["note"].to_pylist()
    assert (ids(lake), notes) == ([1, 2], [None, None])
    assert lake.check().clean


def ids(lake: lakebed.Lake, name: str = "a.t") -> list[int]:
    return sorted(lake.table(name).to_arrow()["id"].to_pylist())


def recording(real: Callable[..., object], opened: list[str]) -> Callable[..., object]:
    def open_output(self: object, path: str) -> object:
        opened.append(path)
        return real(self, path)

    return open_output


def interrupt_once(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Let something happen between the writing of data and the first attempt to commit it."""
    real, waiting = Committer.commit, [meanwhile]

    def commit(self: Committer, proposal: Proposal) -> object:
        if waiting:
            waiting.pop()()
        return real(self, proposal)

    monkeypatch.setattr(Committer, "commit", commit)
