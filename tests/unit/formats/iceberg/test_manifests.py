"""Planning: what is carried, rewritten, merged and left behind, over long random histories."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest

from lakebed.formats.iceberg.manifests import (
    ENTRIES_PER_MANIFEST,
    Plan,
    live_entries,
    merge_windows,
    plan,
)
from lakebed.model.errors import PublishError
from lakebed.model.files import DataFile, LiveFile
from lakebed.model.history import ManifestRecord
from lakebed.model.ids import FileId, SnapshotId, SpecId, Version


def manifest(
    first: int, last: int, entries: int | None = None, *, spec: int = 0, row_id: int | None = None
) -> ManifestRecord:
    count = last - first + 1 if entries is None else entries
    counts = (0, count, 0, 0, count, 0)
    return ManifestRecord(
        first * 10 + spec, "m", 1, "", spec, 1, 1, SnapshotId(1), counts, (), row_id, first, last
    )


def file(file_id: int, spec: int = 0) -> LiveFile:
    data = DataFile(f"data/{file_id}", 1, 1, SpecId(spec), (), {})
    return LiveFile(FileId(file_id), data, Version(0), None, 1, SnapshotId(1), None)


def runs(made: Plan) -> list[tuple[int, int]]:
    return [(d.first_id, d.last_id) for d in made.drafts]


def test_added_files_get_one_manifest_per_spec() -> None:
    made = plan([manifest(1, 4)], [file(5), file(6, 1), file(7)], [], lineage=False)

    assert [(d.spec_id, [f.id for f in d.added]) for d in made.drafts] == [(0, [5, 7]), (1, [6])]
    assert [m.first_id for m in made.carried] == [1]
    assert made.retired == ()


def test_many_added_files_are_split() -> None:
    made = plan([], [file(i) for i in range(1, 25_001)], [], lineage=False)

    assert [len(d.added) for d in made.drafts] == [10_000, 10_000, 5_000]


def test_only_manifests_with_removed_files_are_rewritten() -> None:
    live = [manifest(1, 4), manifest(5, 8), manifest(9, 9)]

    made = plan(live, [], [file(6), file(8)], lineage=False)

    assert runs(made) == [(5, 8)]
    assert [f.id for f in made.drafts[0].removed] == [6, 8]
    assert made.retired == (live[1].id,)
    assert made.carried == (live[0], live[2])


def test_manifests_without_live_files_are_left_behind() -> None:
    empty = manifest(5, 8, 0)

    made = plan([manifest(1, 4), empty], [], [], lineage=False)

    assert made.retired == (empty.id,)
    assert [m.first_id for m in made.carried] == [1]


def test_a_file_of_no_manifest_cannot_be_removed() -> None:
    with pytest.raises(PublishError, match="file 5"):
        plan([manifest(1, 4)], [], [file(5)], lineage=False)
    with pytest.raises(PublishError, match="file 2"):
        plan([manifest(1, 4)], [], [file(2, spec=1)], lineage=False)


def test_a_file_that_comes_back_joins_the_manifest_around_it() -> None:
    made = plan([manifest(1, 4, 3), manifest(9, 12)], [file(2), file(6)], [], lineage=False)

    assert [(d.first_id, d.last_id, [f.id for f in d.added]) for d in made.drafts] == [
        (1, 4, [2]),
        (6, 6, [6]),
    ]


def test_manifests_without_row_ids_are_rewritten_when_the_table_has_them() -> None:
    old, new = manifest(1, 4), manifest(5, 8, row_id=4)

    made = plan([old, new], [], [], lineage=True)

    assert runs(made) == [(1, 4)]
    assert made.carried == (new,)


def test_ten_neighbours_of_one_class_are_merged() -> None:
    live = [manifest(i, i) for i in range(1, 11)]

    made = plan(live, [file(11)], [], lineage=False)

    assert runs(made) == [(1, 10), (11, 11)]
    assert made.carried == ()
    assert plan(live[1:], [file(11)], [], lineage=False).carried == tuple(live[1:])


def test_merging_does_not_step_over_other_files() -> None:
    live = [manifest(i, i) for i in range(1, 20, 2)]

    made = plan(live, [file(10)], [], lineage=False)

    assert runs(made) == [(10, 10)]


def test_what_is_merged_always_rises_a_class() -> None:
    """Else a large manifest would be written again for every few small ones."""
    large, small = manifest(1, 5000), [manifest(i, i) for i in range(5001, 5010)]

    assert merge_windows([large, *small]) == []


def test_manifests_of_mixed_sizes_are_merged_too() -> None:
    row: list[ManifestRecord | None] = []
    for i in range(10):
        row += [manifest(i * 60 + 1, i * 60 + 50), manifest(i * 60 + 51, i * 60 + 51)]

    assert [len(window) for window in merge_windows(row)] == [10, 10]


def test_full_manifests_are_left_alone() -> None:
    full = [manifest(i * 10**5, i * 10**5 + ENTRIES_PER_MANIFEST - 1) for i in range(1, 50)]

    assert merge_windows(full) == []


def test_one_publication_merges_a_bounded_number_of_entries() -> None:
    row = [manifest(i * 10**4 + 1, i * 10**4 + 9999) for i in range(100)]

    windows = merge_windows(row)

    assert sum(live_entries(m) for w in windows for m in w) <= 2 * ENTRIES_PER_MANIFEST


@pytest.mark.parametrize("seed", range(3))
def test_a_long_history_keeps_few_manifests_and_rewrites_little(seed: int) -> None:
    dice = random.Random(seed)
    live: list[ManifestRecord] = []
    alive: dict[int, int] = {}  # file id to spec
    next_id, merged_entries, commits, ids = 1, 0, 3000, 0
    for _ in range(commits):
        added = [
            file(next_id + n, dice.choice((0, 0, 0, 1))) for n in range(dice.choice((1, 1, 7)))
        ]
        next_id += len(added)
        removed = dice.sample(sorted(alive), min(len(alive), dice.choice((0, 0, 0, 2))))
        made = plan(live, added, [file(i, alive[i]) for i in removed], lineage=False)
        alive = {i: s for i, s in alive.items() if i not in removed} | {
            int(f.id): f.file.spec_id for f in added
        }
        written = []
        for draft in made.drafts:
            inside = [
                i
                for i, spec in alive.items()
                if spec == draft.spec_id and draft.first_id <= i <= draft.last_id
            ]
            if len(draft.sources) > 1:
                merged_entries += len(inside)
            ids += 1
            record = manifest(draft.first_id, draft.last_id, len(inside), spec=draft.spec_id)
            written.append(replace(record, id=ids))
        live = [*made.carried, *written]
        assert_partition(live, alive)

    assert len(live) < 80
    assert merged_entries < 4 * next_id


def assert_partition(live: list[ManifestRecord], alive: dict[int, int]) -> None:
    """Every live file is in exactly one manifest, because runs of one spec do not overlap."""
    assert sum(map(live_entries, live)) == len(alive)
    for spec in (0, 1):
        of_spec = sorted((m.first_id, m.last_id) for m in live if m.spec_id == spec)
        assert all(a[1] < b[0] for a, b in pairwise(of_spec))
