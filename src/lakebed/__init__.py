"""lakebed: commits are SQL transactions, every table is native Delta Lake and Apache Iceberg."""

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
    "init",
    "open",
    "upgrade",
]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Any:
    # The handles pull in Arrow; `import lakebed` alone must stay light.
    if name == "Lake":
        from lakebed.api import lake as module
    elif name == "Table":
        from lakebed.api import table as module  # type: ignore[no-redef]
    elif name in ("PublishWarning", "Transaction"):
        from lakebed.api import transaction as module  # type: ignore[no-redef]
    elif name == "Spark":
        from lakebed.api import spark as module  # type: ignore[no-redef]
    elif name == "Commit":
        from lakebed.model import history as module  # type: ignore[no-redef]
    else:
        raise AttributeError(f"module 'lakebed' has no attribute {name!r}")
    return getattr(module, name)
