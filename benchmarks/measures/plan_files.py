"""Very many files that are not there: what is known of each, and the conditions that find it."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

ROWS = 100  # of a file
PER_DAY = 50  # files
DAY = 86_400 * 10**6
COMMIT = 200  # files that one commit adds
STEP = 7_919  # a prime: files in another order


@dataclass(frozen=True, slots=True)
class Known:
    """The least and greatest values of a file: of a long in order, a long and text without order,
    and a moment of the day that is its hidden partition."""

    path: str
    day: int
    a: tuple[int, int]
    b: tuple[int, int]
    c: tuple[str, str]
    d: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Shape:
    files: int

    def known(self, n: int) -> Known:
        a, b, day = n * ROWS, self._other(n) * ROWS, n // PER_DAY
        text = _text(self._other(n))
        return Known(
            path_of(n),
            day,
            (a, a + ROWS - 1),
            (b, b + ROWS - 1),
            (f"{text}-0", f"{text}-9"),
            (day * DAY, (day + 1) * DAY - 1),
        )

    def is_live(self, n: int) -> bool:
        return n % 200 != 7

    def loses(self, n: int) -> bool:
        """Some of its rows were deleted."""
        return n % 200 == 13

    def condition(self, kind: str, n: int) -> str:
        match kind:
            case "clustered":
                return f"a = {n * ROWS + 1}"
            case "unclustered":
                return f"b = {self._other(n) * ROWS + 1}"
            case "text":
                return f"c = '{_text(self._other(n))}-5'"
            case _:
                first, last = _moment(n // PER_DAY), _moment(n // PER_DAY + 1)
                return f"d >= TIMESTAMP '{first}' AND d < TIMESTAMP '{last}'"

    def expected(self, kind: str, n: int) -> list[str]:
        same = [n]
        if kind == "partition":
            first = n // PER_DAY * PER_DAY
            same = list(range(first, min(first + PER_DAY, self.files)))
        return [path_of(i) for i in same if self.is_live(i)]

    def _other(self, n: int) -> int:
        return n * STEP % self.files


def choose(shape: Shape, count: int) -> list[int]:
    """Files that conditions are made for: others every time."""
    return [random.randrange(shape.files) for _ in range(count)]


def path_of(n: int) -> str:
    return f"data/{n:07d}.parquet"


def _text(n: int) -> str:
    return f"customer-{n:09d}"


def _moment(day: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).strftime("%Y-%m-%d")
