"""A bundle where every put lasts by itself: what is put can be seen at once."""

from collections.abc import Callable
from dataclasses import dataclass

from lakebed.storage.base import Storage


@dataclass(frozen=True, slots=True)
class LooseBundle:
    storage: Storage
    named: Callable[[str], None]

    def location(self, path: str) -> str:
        return self.storage.location(path)

    def get(self, path: str) -> bytes:
        return self.storage.get(path)

    def put_if_absent(self, path: str, data: bytes, *, modified_ms: int | None = None) -> bool:
        won = self.storage.put_if_absent(path, data, modified_ms=modified_ms)
        if won:
            self.named(path)
        return won

    def replace(self, path: str, data: bytes) -> None:
        self.storage.replace(path, data)
        self.named(path)
