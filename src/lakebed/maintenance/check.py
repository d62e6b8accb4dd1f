"""`lakebed check`: rows against data files and against both formats; repair publishes anew."""

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from lakebed.core.catalog import Catalog
from lakebed.core.commit import Committed, Committer
from lakebed.core.ledger import Ledger
from lakebed.core.outbox import Outbox
from lakebed.formats.delta.log import LAST_CHECKPOINT
from lakebed.formats.iceberg.names import VERSION_HINT
from lakebed.formats.publish import Drainer
from lakebed.maintenance.check_data import check_data
from lakebed.maintenance.check_published import broken_branches, check_published
from lakebed.maintenance.findings import Finding, Report
from lakebed.model.changes import Proposal, Republish, TableChanges
from lakebed.model.errors import ForeignCommit
from lakebed.model.history import ICEBERG, TableHead
from lakebed.model.names import TableName
from lakebed.storage.base import Storage
from lakebed.storage.claim import MARKER

_log = logging.getLogger("lakebed.check")
_HINTS = frozenset({LAST_CHECKPOINT, VERSION_HINT, MARKER})


class Check:
    def __init__(self, catalog: Catalog, outbox: Outbox, storage: Storage) -> None:
        self._catalog = catalog
        self._outbox = outbox
        self._storage = storage

    def run(self, names: Sequence[TableName] | None) -> Report:
        report = Report()
        heads = (
            self._catalog.list_tables(None) if names is None else self._catalog.find_many([*names])
        )
        for head in heads:
            _log.info("checking %s", head.name)
            self._check_table(head, report)
        return report

    def _check_table(self, head: TableHead, report: Report) -> None:
        ledger = self._outbox.ledger(head.id)
        stored = self._stored(head)
        findings = self._compare(ledger, head, stored)
        if findings:
            # Writers and publishers go on meanwhile: what is wrong is so at a second look as well.
            again = {(f.code, f.path) for f in self._compare(ledger, head, self._stored(head))}
            findings = [f for f in findings if (f.code, f.path) in again]
        report.tables += 1
        report.files += head.live_files
        report.findings += findings
        report.findings += _stopped(ledger, head)
        report.notes += _waiting(ledger, head)
        # Read after the listing: what a writer committed meanwhile is known by now.
        known = ledger.known_paths() | _HINTS
        for path in sorted(stored.keys() - known):
            report.notes.append(Finding(str(head.name), "ORPHAN", "no version knows it", path))

    def _compare(self, ledger: Ledger, head: TableHead, stored: Mapping[str, int]) -> list[Finding]:
        data = check_data(self._storage, ledger, head, stored)
        return [*data, *check_published(self._storage, ledger, head, stored)]

    def _stored(self, head: TableHead) -> dict[str, int]:
        start = len(head.location) + 1
        return {s.path[start:]: s.size_bytes for s in self._storage.list(head.location)}


def _stopped(ledger: Ledger, head: TableHead) -> Iterator[Finding]:
    for row in ledger.pending():
        if row.error_code == ForeignCommit.code:
            message = f"publishing version {row.version} is stopped: {row.error}"
            yield Finding(str(head.name), ForeignCommit.code, message, None, row.format)
            return


def _waiting(ledger: Ledger, head: TableHead) -> Iterator[Finding]:
    for row in ledger.pending():
        message = f"version {row.version} waits for publication ({row.kind})"
        yield Finding(str(head.name), "UNDRAINED", message, None, row.format)


class Repair:
    """Publishes anew, as new versions with the same rows, the formats that differ from the rows."""

    def __init__(
        self,
        catalog: Catalog,
        outbox: Outbox,
        storage: Storage,
        committer: Committer,
        drainer: Drainer,
    ) -> None:
        self._catalog = catalog
        self._outbox = outbox
        self._storage = storage
        self._committer = committer
        self._drainer = drainer

    def run(self, report: Report) -> list[str]:
        """The tables that are repaired."""
        broken: dict[str, set[str]] = {}
        for finding in report.findings:
            if finding.format is not None and finding.code != ForeignCommit.code:
                broken.setdefault(finding.table, set()).add(finding.format)
        return [table for table, formats in sorted(broken.items()) if self._mend(table, formats)]

    def _mend(self, table: str, formats: set[str]) -> bool:
        *levels, name = table.split(".")
        head = self._catalog.find(TableName(tuple(levels), name))
        self._drainer.drain(head.id, force=True)
        mended = self._publish_anew(head, formats)
        ledger = self._outbox.ledger(head.id)
        # Main's metadata can be read by now, and so what it shows of the branches.
        for ref in broken_branches(self._storage, ledger, head) if mended else ():
            line = ledger.line(ref.line)
            branch = replace(head, line=ref.line, version=line.version)
            mended = self._publish_anew(branch, {ICEBERG}) and mended
        return mended

    def _publish_anew(self, head: TableHead, formats: set[str]) -> bool:
        change = Republish(tuple(sorted(formats)))
        changes = TableChanges(head.id, head.version, "repair", (change,), line=head.line)
        outcome = self._committer.commit(
            Proposal(
                transaction_id=str(uuid.uuid4()),
                author="lakebed",
                message=f"publish {', '.join(sorted(formats))} anew",
                isolation="write_serializable",
                tables=(changes,),
            )
        )
        if not isinstance(outcome, Committed):
            return False
        self._drainer.drain(head.id, force=True)
        return True
