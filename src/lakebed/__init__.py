"""lakebed: commits are SQL transactions, every table is native Delta Lake and Apache Iceberg."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lakebed.api.open import init, open, upgrade
from lakebed.model.errors import (
    AlreadyExists,
    CommitConflict,
    CommitError,
    CommitUnknown,
    DatabaseError,
    Forbidden,
    ForeignCommit,
    InvalidInput,
    LakebedError,
    NoChanges,
    NotFound,
    PublishError,
    SchemaMismatch,
    StorageError,
    TableExists,
    TableNotFound,
)
from lakebed.model.version import VERSION

if TYPE_CHECKING:
    from lakebed.api.lake import Lake
    from lakebed.api.spark import Spark
    from lakebed.api.table import Table
    from lakebed.api.transaction import PublishWarning, Transaction
    from lakebed.api.writer import Writer
    from lakebed.model.history import Commit

__version__ = VERSION

__all__ = [
    "AlreadyExists",
    "Commit",
    "CommitConflict",
    "CommitError",
    "CommitUnknown",
    "DatabaseError",
    "Forbidden",
    "ForeignCommit",
    "InvalidInput",
    "Lake",
    "LakebedError",
    "NoChanges",
    "NotFound",
    "PublishError",
    "PublishWarning",
    "SchemaMismatch",
    "Spark",
    "StorageError",
    "Table",
    "TableExists",
    "TableNotFound",
    "Transaction",
    "Writer",
    "init",
    "open",
    "upgrade",
]


def __dir__() -> list[str]:
    return __all__


# The handles pull in Arrow; `import lakebed` alone must stay light.
_LATE = {
    "Commit": "lakebed.model.history",
    "Lake": "lakebed.api.lake",
    "PublishWarning": "lakebed.api.transaction",
    "Spark": "lakebed.api.spark",
    "Table": "lakebed.api.table",
    "Transaction": "lakebed.api.transaction",
    "Writer": "lakebed.api.writer",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module 'lakebed' has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)
