"""What the statements of a session share: the lake, the namespace in use, an open transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lakebed.api.options import CommitOptions
from lakebed.api.parts import Parts
from lakebed.api.sql.host import Host
from lakebed.api.sql.wording import Wording
from lakebed.api.table import Table
from lakebed.api.transaction import Transaction
from lakebed.api.txtable import TransactionTable
from lakebed.model.errors import InvalidName, SqlUnsupported, TableNotFound
from lakebed.model.names import TableName
from lakebed.sql.statements import Target

Values = Mapping[str, object]
_WRITTEN = "write to the tables that it reads"


@dataclass(slots=True)
class Context:
    parts: Parts
    lake: Host
    allow_files: Sequence[Path] = ()
    namespace: tuple[str, ...] = ()
    transaction: Transaction | None = None
    options: CommitOptions = field(default_factory=CommitOptions)
    wording: Wording = field(default_factory=Wording)  # of the statement that runs

    def full(self, name: TableName) -> TableName:
        """The name with the namespace in use, when it has none of its own."""
        if any("." in part for part in (*name.namespace, name.name)):
            raise InvalidName(f"{name}: a quoted name holds a dot", hint="quote each part alone")
        if name.namespace:
            return name
        if not self.namespace:
            raise TableNotFound(
                f"{name.name} has no namespace",
                hint=f"write namespace.{name.name}, or choose one first: USE namespace",
                table=name.name,
            )
        return TableName(self.namespace, name.name)

    def text(self, name: TableName) -> str:
        return str(self.full(name))

    def refuse_view(self, name: TableName, hint: str) -> None:
        """A view stands where only a table can."""
        full = self.full(name)
        if self.parts.views.find(full) is not None:
            raise SqlUnsupported(f"{full} is a view, not a table", hint=hint, view=str(full))

    def staged(self, target: Target) -> TransactionTable:
        """The table of a statement in the open transaction."""
        assert self.transaction is not None
        self.refuse_view(target.name, _WRITTEN)
        name = self.text(target.name)
        return self.transaction.table(f"{name}@{target.branch}" if target.branch else name)

    def table(self, target: Target) -> tuple[Table, CommitOptions]:
        """The table of a statement that commits by itself, and how."""
        self.refuse_view(target.name, _WRITTEN)
        options = self.options
        if target.branch is not None:
            options = CommitOptions(**{**options, "branch": target.branch})
        return self.lake.table(self.text(target.name)), options

    def outside(self, what: str) -> None:
        """Refuse a statement that no transaction can take back."""
        if self.transaction is not None:
            raise SqlUnsupported(
                f"{what} cannot be part of a transaction",
                hint="COMMIT or ROLLBACK first; it takes effect at once",
            )
