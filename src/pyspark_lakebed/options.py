"""What users give with `.option(…)`, checked; names are Spark's and Delta's where they have one."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

import lakebed
from lakebed import InvalidInput

if TYPE_CHECKING:  # they pull in the whole API, which executors do not need
    from lakebed import Lake
    from lakebed.api.creating import TableOptions
    from lakebed.api.following import OnChange

_KNOWN = (
    "lake",
    "warehouse",
    "table",
    "path",
    "version",
    "timestamp",
    "ref",
    "columns",
    "where",
    "pushFilters",
    "readChangeFeed",
    "startingVersion",
    "startingTimestamp",
    "maxVersionsPerTrigger",
    "maxFilesPerTrigger",
    "skipChangeCommits",
    "ignoreDeletes",
    "ignoreChanges",
    "mode",
    "key",
    "replaceWhere",
    "partitionOverwriteMode",
    "txnAppId",
    "txnVersion",
    "partitionBy",
    "sortBy",
    "primaryKey",
    "message",
    "checkpointLocation",
    "queryName",
)
_LOWER = {name.lower(): name for name in _KNOWN}
_COMMA = re.compile(r",(?![^(]*\))")  # not one inside of bucket(16, id)


class Options:
    """Nothing is looked up here but what the text itself says."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): value for name, value in given.items()}
        for name in self._given.keys() - _LOWER.keys():
            close = get_close_matches(name, _LOWER, n=1, cutoff=0.8)
            if close:  # others may be a platform's own
                raise InvalidInput(
                    f"there is no option {name!r}", hint=f"did you mean {_LOWER[close[0]]}?"
                )

    @contextmanager
    def open(self) -> Iterator["Lake"]:
        with self.opened() as lake:
            yield lake

    def opened(self) -> "Lake":
        """To be closed by the caller."""
        uri = self.text("lake")
        if uri is None:
            raise InvalidInput(
                "no lake is named", hint='.option("lake", "/folder/of/the/lake or postgresql://…")'
            )
        if uri == ":memory:":
            raise InvalidInput(
                "a lake in memory lives in one process, and Spark has many",
                hint="use a lake in a folder, or on PostgreSQL",
            )
        return lakebed.open(uri, warehouse=self.text("warehouse"))

    @property
    def table(self) -> str:
        name = self.text("path") or self.text("table")
        if name is None:
            raise InvalidInput("no table is named", hint='.load("namespace.table")')
        return name

    @property
    def ref(self) -> str | None:
        return self.text("ref")

    @property
    def columns(self) -> list[str] | None:
        return self.names("columns")

    @property
    def starting_version(self) -> int | Literal["latest"] | None:
        if (self.text("startingVersion") or "").lower() == "latest":
            return "latest"
        return self.number("startingVersion")

    @property
    def on_change(self) -> "OnChange":
        """As Delta's options say; the strongest of several counts."""
        if self.flag("skipChangeCommits"):
            return "skip"
        if self.flag("ignoreChanges"):
            return "rows"
        return "skip_deletes" if self.flag("ignoreDeletes") else "refuse"

    @property
    def new_table(self) -> "TableOptions":
        return {
            "partition_by": self.names("partitionBy") or (),
            "sort_by": self.names("sortBy") or (),
            "primary_key": self.names("primaryKey") or (),
        }

    @property
    def txn(self) -> tuple[str, int] | None:
        """Of a batch: the same pair again writes nothing."""
        application, number = self.text("txnAppId"), self.number("txnVersion")
        if (application is None) != (number is None):
            raise InvalidInput(
                "txnAppId and txnVersion belong together", hint="give both, or none of them"
            )
        return None if application is None or number is None else (application, number)

    @property
    def application(self) -> str:
        """Of a stream: the same as long as it goes on from the same checkpoint."""
        given, checkpoint = self.text("txnAppId"), self.text("checkpointLocation")
        if given is not None:
            return given
        if checkpoint is None:
            raise InvalidInput(
                "a stream without a checkpoint cannot go on where it ended",
                hint='give .option("checkpointLocation", …), or .option("txnAppId", …)',
            )
        stream = _query_id(checkpoint) or checkpoint
        digest = hashlib.sha256(f"{stream}\n{self.table}".encode())
        return f"spark-{digest.hexdigest()[:32]}"

    def text(self, name: str) -> str | None:
        return self._given.get(name.lower()) or None

    def names(self, name: str) -> list[str] | None:
        text = self.text(name)
        return None if text is None else [part.strip() for part in _COMMA.split(text)]

    def flag(self, name: str) -> bool:
        text = (self.text(name) or "false").lower()
        if text not in ("true", "false"):
            raise InvalidInput(f"option {name} is {text!r}", hint="use true or false")
        return text == "true"

    def number(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise InvalidInput(f"option {name} is {text!r}", hint="give a whole number") from None


def _query_id(checkpoint: str) -> str | None:
    """What Spark calls the query: another one when the same place is begun anew.

    Only folders of this machine can be looked at without Spark.
    """
    parts = urlsplit(checkpoint)
    if parts.scheme not in ("", "file"):
        return None
    folder = Path(unquote(parts.path) if parts.scheme else checkpoint)
    try:
        return str(json.loads((folder / "metadata").read_text("utf-8"))["id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
