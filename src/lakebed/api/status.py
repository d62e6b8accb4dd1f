"""How a lake is doing: what waits for publication, since when, what is stopped; the cache."""

from collections import defaultdict
from dataclasses import dataclass

from lakebed.api.parts import Parts
from lakebed.model.errors import ForeignCommit
from lakebed.model.history import Backlog, OutboxRow
from lakebed.storage.cache.blocks import CacheUse


@dataclass(frozen=True, slots=True)
class Lag:
    """What one format of one table waits for."""

    table: str
    format: str
    kind: str
    from_version: int
    to_version: int
    waiting: int
    lag_s: float
    attempts: int
    error_code: str | None
    error: str | None

    @property
    def stopped(self) -> bool:
        return self.error_code == ForeignCommit.code


@dataclass(frozen=True, slots=True)
class SplitCommit:
    """A commit over several tables that path readers see in some of them only."""

    transaction_id: str
    published: tuple[str, ...]
    waiting: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Status:
    lags: tuple[Lag, ...]
    split_commits: tuple[SplitCommit, ...]
    warn_s: float
    backlog: Backlog
    cache: CacheUse | None = None  # of files from an object store, by this handle

    @property
    def stopped(self) -> bool:
        return any(lag.stopped for lag in self.lags)

    @property
    def lagging(self) -> bool:
        return any(lag.lag_s > self.warn_s and lag.kind != "checkpoint" for lag in self.lags)


def status_of(parts: Parts) -> Status:
    rows, now_ms = parts.outbox.all_pending()
    groups: dict[tuple[int, str, str], list[OutboxRow]] = defaultdict(list)
    for row in rows:
        chain = row.kind if row.kind in ("checkpoint", "purge") else "commit"
        groups[row.table_id, row.format, chain].append(row)
    names = {row.table_id: _name(parts, row) for row in rows}
    lags = tuple(
        _lag(names[group[0].table_id], chain, group, now_ms)
        for (_, _, chain), group in groups.items()
    )
    commits = [r for r in rows if r.kind in ("commit", "start")]
    warn_s = float(parts.settings.value("publish.lag-warn-s"))
    cache = None if parts.cache is None else parts.cache.use()
    return Status(lags, _split(parts, commits), warn_s, _backlog(commits, now_ms), cache)


def _backlog(rows: list[OutboxRow], now_ms: int) -> Backlog:
    versions = {(row.table_id, row.line, row.version) for row in rows}
    since_ms = min((row.created_ms for row in rows), default=now_ms)
    return Backlog(len(versions), max(0, now_ms - since_ms) / 1000)


def _name(parts: Parts, row: OutboxRow) -> str:
    head = parts.outbox.ledger(row.table_id).head()
    return str(head.name) if head else f"table {row.table_id}"


def _lag(name: str, chain: str, rows: list[OutboxRow], now_ms: int) -> Lag:
    first = rows[0]
    return Lag(
        table=name,
        format=first.format,
        kind=chain,
        from_version=first.version,
        to_version=rows[-1].version,
        waiting=len(rows),
        lag_s=max(0, now_ms - first.created_ms) / 1000,
        attempts=first.attempts,
        error_code=first.error_code,
        error=first.error,
    )


def _split(parts: Parts, rows: list[OutboxRow]) -> tuple[SplitCommit, ...]:
    waiting = {(r.table_id, r.line, r.version) for r in rows}
    found = {}
    for row in rows:
        transaction_id, places = parts.outbox.transaction_of(row)
        late = tuple(name for place, name in places if place in waiting)
        done = tuple(name for place, name in places if place not in waiting)
        if done:
            found[transaction_id] = SplitCommit(transaction_id, done, late)
    return tuple(found.values())
