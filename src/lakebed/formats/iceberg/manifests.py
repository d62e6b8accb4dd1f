"""Pure: which manifests a version carries on, writes anew, and leaves behind.

A live manifest holds the live files of one run of file ids of one spec, or the deletion vectors of
one run of their ids; runs of one content and spec never overlap.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lakebed.formats.iceberg.listed import Listed, vectors_of
from lakebed.model.errors import PublishError
from lakebed.model.files import LiveFile
from lakebed.model.history import DATA, DELETES, ManifestRecord

ENTRIES_PER_MANIFEST = 10_000
MERGE_FROM = 10  # so many small neighbours become one
_LAST_CLASS = 3  # what it is merged into holds ENTRIES_PER_MANIFEST or more, and is left alone
_MERGED_PER_PUBLICATION = 2 * ENTRIES_PER_MANIFEST
_WORDS = {DATA: "file", DELETES: "deletion vector"}


@dataclass(frozen=True, slots=True)
class Draft:
    """A manifest to write: what this version adds and removes, and what lives on in `sources`."""

    content: int
    spec_id: int
    first_id: int
    last_id: int
    sources: tuple[ManifestRecord, ...] = ()
    added: tuple[Listed, ...] = ()
    removed: tuple[Listed, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    carried: tuple[ManifestRecord, ...]
    retired: tuple[int, ...]
    drafts: tuple[Draft, ...]


@dataclass(slots=True)
class _Touched:
    added: list[Listed] = field(default_factory=list)
    removed: list[Listed] = field(default_factory=list)


def live_entries(manifest: ManifestRecord) -> int:
    return manifest.counts[0] + manifest.counts[1]


def plan(
    live: Sequence[ManifestRecord],
    added: Sequence[LiveFile],
    removed: Sequence[LiveFile],
    *,
    lineage: bool,
) -> Plan:
    """`lineage`: the table has row ids, so manifests that lack them are written again."""
    # Entries that only say what an earlier snapshot deleted have been told once.
    dead = [m.id for m in live if not live_entries(m)]
    kept = [m for m in live if live_entries(m)]
    # A file that is both has another deletion vector: its data stays where it is.
    stays = {f.id for f in added} & {f.id for f in removed}
    drafts = _plan_content(
        DATA,
        kept,
        [f for f in added if f.id not in stays],
        [f for f in removed if f.id not in stays],
        lineage=lineage,
    )
    drafts += _plan_content(DELETES, kept, vectors_of(added), vectors_of(removed), lineage=False)
    replaced = {m.id for draft in drafts for m in draft.sources}
    return Plan(
        carried=tuple(m for m in kept if m.id not in replaced),
        retired=tuple(sorted([*dead, *replaced])),
        drafts=tuple(sorted(drafts, key=lambda d: (d.content, d.first_id, d.spec_id))),
    )


def _plan_content(
    content: int,
    live: Sequence[ManifestRecord],
    added: Sequence[Listed],
    removed: Sequence[Listed],
    *,
    lineage: bool,
) -> list[Draft]:
    live = [m for m in live if m.content == content]
    drafts: list[Draft] = []
    for spec_id in sorted({m.spec_id for m in live} | {f.file.spec_id for f in [*added, *removed]}):
        drafts += _plan_spec(
            content,
            [m for m in live if m.spec_id == spec_id],
            [f for f in added if f.file.spec_id == spec_id],
            [f for f in removed if f.file.spec_id == spec_id],
            lineage=lineage,
        )
    return drafts


def _plan_spec(
    content: int,
    live: list[ManifestRecord],
    added: list[Listed],
    removed: list[Listed],
    *,
    lineage: bool,
) -> list[Draft]:
    live = sorted(live, key=lambda m: m.first_id)
    firsts = [m.first_id for m in live]
    touched: dict[int, _Touched] = defaultdict(_Touched)  # by place in `live`
    between: dict[int, list[Listed]] = defaultdict(list)  # by the place before the gap
    for file in removed:
        at = bisect_right(firsts, file.id) - 1
        if at < 0 or file.id > live[at].last_id:
            raise PublishError(
                f"no published manifest holds {_WORDS[content]} {file.id} ({file.file.path}), which"
                " is removed",
                hint="turn Iceberg publication off and on again for this table to start afresh",
                path=file.file.path,
            )
        touched[at].removed.append(file)
    for file in added:
        at = bisect_right(firsts, file.id) - 1
        # A file that comes back (restore) has an old id, which a manifest's run may hold.
        inside = at >= 0 and file.id <= live[at].last_id
        (touched[at].added if inside else between[at]).append(file)
    for at, manifest in enumerate(live):
        if lineage and manifest.first_row_id is None:
            _ = touched[at]
    rewritten = [_rewritten(live[at], changes) for at, changes in touched.items()]
    fresh = [draft for files in between.values() for draft in _fresh(content, files)]
    row: list[tuple[int, ManifestRecord | None]] = [
        (m.first_id, None if at in touched else m) for at, m in enumerate(live)
    ]
    row += [(draft.first_id, None) for draft in fresh]
    neighbours = [m for _, m in sorted(row, key=lambda item: item[0])]
    return rewritten + fresh + [_merged(window) for window in merge_windows(neighbours)]


def _rewritten(manifest: ManifestRecord, changes: _Touched) -> Draft:
    return Draft(
        manifest.content,
        manifest.spec_id,
        manifest.first_id,
        manifest.last_id,
        (manifest,),
        tuple(changes.added),
        tuple(changes.removed),
    )


def _fresh(content: int, files: list[Listed]) -> Iterator[Draft]:
    files = sorted(files, key=lambda f: f.id)
    for start in range(0, len(files), ENTRIES_PER_MANIFEST):
        chunk = files[start : start + ENTRIES_PER_MANIFEST]
        yield Draft(content, chunk[0].file.spec_id, chunk[0].id, chunk[-1].id, added=tuple(chunk))


def _merged(window: Sequence[ManifestRecord]) -> Draft:
    first, last = window[0], window[-1]
    return Draft(first.content, first.spec_id, first.first_id, last.last_id, tuple(window))


def merge_windows(row: Sequence[ManifestRecord | None]) -> list[list[ManifestRecord]]:
    """Neighbours to merge, of the lowest size class that has any; None separates neighbours.

    The class of a manifest is floor(log10(entries)). A window becomes a manifest of a higher class
    than all it is made of: an entry is written again once per class, and few small ones stay.
    """
    for size_class in range(_LAST_CLASS + 1):
        windows = list(_windows(row, size_class))
        if windows:
            return _within_budget(windows)
    return []


def _windows(
    row: Sequence[ManifestRecord | None], size_class: int
) -> Iterator[list[ManifestRecord]]:
    higher = int(10 ** (size_class + 1))
    # Two that fill a last manifest are enough: waiting for ten would make one long publication.
    fewest = MERGE_FROM if size_class < _LAST_CLASS else 2
    window: list[ManifestRecord] = []
    entries = 0
    for manifest in row:
        more = higher if manifest is None else live_entries(manifest)
        if manifest is None or more >= higher:
            window, entries = [], 0
            continue
        window.append(manifest)
        entries += more
        if len(window) >= fewest and entries >= higher:
            yield window
            window, entries = [], 0


def _within_budget(windows: list[list[ManifestRecord]]) -> list[list[ManifestRecord]]:
    """The first, and as many more as one publication should pay for."""
    taken: list[list[ManifestRecord]] = []
    entries = 0
    for window in windows:
        entries += sum(map(live_entries, window))
        if taken and entries > _MERGED_PER_PUBLICATION:
            break
        taken.append(window)
    return taken
