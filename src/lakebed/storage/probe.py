"""Tries whether a store decides races: of two that put one object, one wins and the other knows."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier

from lakebed.model.errors import LakebedError
from lakebed.storage.base import Storage

_FOLDER = ".lakebed-probe"
_ROUNDS = 3


def decides_races(storage: Storage) -> bool:
    """Put some objects twice at once, and once more; they are removed again."""
    return all(_one_wins(storage, f"{_FOLDER}/{uuid.uuid4().hex}") for _ in range(_ROUNDS))


def _one_wins(storage: Storage, path: str) -> bool:
    values = [b"one", b"two"]
    together = Barrier(len(values))

    def put(value: bytes) -> bool:
        together.wait()
        return storage.put_if_absent(path, value)

    try:
        with ThreadPoolExecutor(len(values)) as pool:
            won = list(pool.map(put, values))
        decided = won.count(True) == 1 and not storage.put_if_absent(path, b"three")
        decided = decided and storage.get(path) == values[won.index(True)]
    except LakebedError:
        with suppress(LakebedError):  # it must not hide why nothing works
            storage.delete(path)
        raise
    storage.delete(path)
    return decided
