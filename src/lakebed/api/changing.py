"""A change of rows as one commit: planned again from the new head after a conflict."""

from collections.abc import Callable
from dataclasses import dataclass

from lakebed.api.options import Options
from lakebed.api.parts import Parts
from lakebed.api.transaction import Transaction, conflict_error
from lakebed.api.txtable import TransactionTable
from lakebed.core.commit import Committed, Outcome
from lakebed.model.counts import NO_ROWS, RowCounts
from lakebed.model.history import MAIN, Commit, TableHead
from lakebed.model.ids import MAIN_LINE

Stage = Callable[[TransactionTable], RowCounts]


class _Nothing(Exception):
    """Leaves a held commit that has nothing to do."""


@dataclass(frozen=True, slots=True)
class RowCommit:
    """`stage` finds the rows and writes what is new.

    `first` is the table as the call found it, `head` gives it as it is now.
    """

    parts: Parts
    operation: str
    options: Options
    digest: str
    first: TableHead
    head: Callable[[], TableHead]
    stage: Stage

    def run(self) -> Commit:
        """The last attempt holds the table, so that nothing can come before it again."""
        retries = int(self.parts.settings.value("commit.retries"))
        for attempt in range(retries + 1):
            transaction = Transaction(self.parts, self.options, self.digest)
            try:
                held = 0 < attempt == retries
                base = self.head() if attempt else self.first
                outcome = self._held(transaction) if held else self._freely(transaction, base)
            except _Nothing:
                transaction.answer_nothing()
                return unchanged(self.head(), self.operation, self.options)
            if isinstance(outcome, Committed):
                return next(iter(transaction.commits.values()))
            transaction.discard()
            conflict = outcome
        raise conflict_error(conflict)

    def _freely(self, transaction: Transaction, base: TableHead) -> Outcome:
        self._prepare(transaction, base)
        return transaction.attempt()

    def _held(self, transaction: Transaction) -> Outcome:
        return transaction.attempt_held(
            self.first.id, lambda: self._prepare(transaction, self.head())
        )

    def _prepare(self, transaction: Transaction, base: TableHead) -> None:
        table = transaction.pin(base)
        try:
            self.stage(table)
        except BaseException:
            transaction.discard()
            raise
        if table.is_changed:
            return
        if self.options.txn is None:
            raise _Nothing
        table.touch(self.operation)  # a version that keeps the application's number


def unchanged(
    head: TableHead, operation: str, options: Options, *, replayed: bool = False
) -> Commit:
    """The answer to a change that met no row: nothing was committed."""
    return Commit(
        table=str(head.name),
        version=head.version,
        time_ms=head.time_ms,
        operation=operation,
        author=options.author,
        message=options.message,
        transaction_id="",
        summary=NO_ROWS.to_summary(),
        replayed=replayed,
        changed=False,
        branch=MAIN if head.line == MAIN_LINE else options.branch,
    )
