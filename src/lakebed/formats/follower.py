"""Publication as a service: looks at the outbox again and again, and publishes what waits."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass

from lakebed.core.outbox import Outbox
from lakebed.formats.lag import LagWatch
from lakebed.formats.publish import Drainer
from lakebed.model.errors import CommitUnknown, DatabaseLocked, DatabaseUnavailable, LakebedError
from lakebed.model.history import Backlog

_BATCH = 200  # outbox rows of one table before it is another one's turn, or the end
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True, slots=True)
class Turn:
    """One round over the tables that wait: what was published, or why nothing could be."""

    published: int = 0
    tables: int = 0
    backlog: Backlog | None = None  # as it was seen last, not in each round
    error: LakebedError | None = None
    retry_s: float = 0.0


class Follower:
    """Any number may follow one lake: a table is published by one at a time, each file once."""

    def __init__(self, outbox: Outbox, drainer: Drainer, watch: LagWatch) -> None:
        self._outbox = outbox
        self._drainer = drainer
        self._watch = watch

    def run(self, stop: threading.Event, every_s: float, tell: Callable[[Turn], object]) -> None:
        """Until `stop` is set, and then to the end of the batch under way.

        A database that is away is asked again, after pauses that grow. All that is done can be
        repeated, so that a connection lost at any moment costs nothing but time.
        """
        failures = 0
        while not stop.is_set():
            try:
                turn = self._turn(stop)
                failures = 0
            except (DatabaseUnavailable, DatabaseLocked, CommitUnknown) as error:
                pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**failures)
                pause_s = random.uniform(pause_s / 2, pause_s)
                failures = min(failures + 1, 20)
                tell(Turn(error=error, retry_s=pause_s))
                stop.wait(pause_s)
                continue
            if turn.published or turn.backlog is not None:
                tell(turn)
            if not turn.published:
                stop.wait(every_s)

    def _turn(self, stop: threading.Event) -> Turn:
        rows, _ = self._outbox.all_pending()
        published, tables = 0, 0
        for table_id in dict.fromkeys(row.table_id for row in rows):
            if stop.is_set():
                break
            done = self._drainer.drain(table_id, most=_BATCH).done
            published += done
            tables += done > 0
        return Turn(published, tables, self._watch.look())
