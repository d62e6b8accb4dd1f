"""Keys of values: bytes that are in the order of the values, and words, the part that differs.

Different values may get one key, as may different keys one word; neither ever changes places.
"""

import math
import struct
from decimal import Decimal

from lakebed.model.types import Stored

LOWEST, HIGHEST = 0, 2**64 - 1
FIRST, LAST = b"", b"\xff" * 65  # before and after every key
_LONGEST = 64
_SIGN = 1 << 63
_ALL = 2**64 - 1


def key_of(value: Stored) -> bytes:
    """Values of one column compare as their keys do, as far as those differ. NaN has none."""
    match value:
        case str():
            return value.encode("utf-8", "surrogatepass")[:_LONGEST]
        case bytes():
            return value[:_LONGEST]
        case float():
            return _number(value)
        case Decimal():
            return _number(float(value))  # rounding keeps the order
        case _:
            return min(max(int(value) + _SIGN, 0), _ALL).to_bytes(8)


def prefix_key(prefix: str) -> tuple[bytes, bytes]:
    """Text that begins with the prefix has a key between these."""
    key = key_of(prefix)
    return key, key.ljust(_LONGEST, b"\xff")


def word_of(key: bytes, prefix: bytes) -> int:
    """A key among those that begin with the prefix."""
    if not key.startswith(prefix):
        return LOWEST if key < prefix else HIGHEST
    return int.from_bytes(key[len(prefix) : len(prefix) + 8].ljust(8, b"\0"))


def common_prefix(low: bytes, high: bytes) -> bytes:
    """Of two keys, and so of all between them; numbers differ in their first eight bytes anyway."""
    if len(low) == len(high) == 8:
        return b""
    length = next(
        (n for n, (a, b) in enumerate(zip(low, high, strict=False)) if a != b),
        min(len(low), len(high)),
    )
    return low[:length]


def _number(value: float) -> bytes:
    assert not math.isnan(value)
    bits = int.from_bytes(struct.pack(">d", value + 0.0))  # the two zeros are one
    return (bits ^ (_ALL if bits & _SIGN else _SIGN)).to_bytes(8)
