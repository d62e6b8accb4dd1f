"""Completion in the shell: words of SQL, tables, and the columns of tables already named."""

import re
from typing import TYPE_CHECKING

from lakebed.model.errors import LakebedError

if TYPE_CHECKING:
    from lakebed.api.lake import Lake
    from lakebed.api.sql.session import SqlSession

_WORDS = (
    "ALTER TABLE",
    "BEGIN",
    "CALL",
    "COMMIT",
    "COPY",
    "CREATE TABLE",
    "CREATE VIEW",
    "DELETE FROM",
    "DESCRIBE",
    "DROP TABLE",
    "EXPLAIN",
    "FROM",
    "GROUP BY",
    "INSERT INTO",
    "JOIN",
    "LIMIT",
    "MERGE INTO",
    "ORDER BY",
    "ROLLBACK",
    "SELECT",
    "SHOW TABLES",
    "TRUNCATE TABLE",
    "UPDATE",
    "USE",
    "VALUES",
    "VERSION AS OF",
    "WHERE",
    "WITH",
)
_NAMED = re.compile(r"[A-Za-z_][\w.]*")


class Completer:
    """Called by readline with a word and a number until it answers None."""

    def __init__(self, lake: "Lake", session: "SqlSession") -> None:
        self._lake = lake
        self._session = session
        self._found: list[str] = []

    def __call__(self, word: str, number: int) -> str | None:
        if number == 0:
            self._found = self.complete(word, _line())
        return self._found[number] if number < len(self._found) else None

    def complete(self, word: str, line: str) -> list[str]:
        """Everything that begins with the word: what is in the lake before words of SQL."""
        try:
            names = [*self._tables(), *self._columns(line)]
        except LakebedError:
            names = []
        start = word.casefold()
        known = [n for n in dict.fromkeys(names) if n.casefold().startswith(start)]
        return known + [w for w in _WORDS if word and w.startswith(word.upper())]

    def _tables(self) -> list[str]:
        full = [*self._lake.tables(), *(str(v.name) for v in self._lake.views())]
        used = f"{self._session.namespace}."
        return full + [name.removeprefix(used) for name in full if name.startswith(used)]

    def _columns(self, line: str) -> list[str]:
        named = set(_NAMED.findall(line))
        used = self._session.namespace
        tables = [
            t for t in self._lake.tables() if t in named or t.removeprefix(f"{used}.") in named
        ]
        return [f.name for t in tables for f in self._lake.table(t).schema.fields]


def _line() -> str:
    try:
        import readline
    except ImportError:
        return ""
    return readline.get_line_buffer()
