"""`lakebed publish --follow`: publication as a service, until it is told to end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakebed.cli.call import Call
from lakebed.cli.failures import INTERRUPTED, OK
from lakebed.cli.output import Record, count_of, say, to_json, write_bytes

if TYPE_CHECKING:
    from lakebed.formats.follower import Turn


def follow(call: Call, every_s: float) -> int:
    """The exit code: 0 after SIGTERM, 130 after SIGINT."""
    stop = threading.Event()
    with _ended_by_signals(stop) as got, call.open() as lake:
        teller = _Teller(lake.status().warn_s, as_json=call.json)
        teller.event("following", f"following {lake.uri}", lake=lake.uri)
        lake.follow_publishing(stop, every_s=every_s, tell=teller.turn)
        teller.event("ended", "ended: what was begun is published")
    return INTERRUPTED if signal.SIGINT in got else OK


class _Teller:
    """Lines of JSON on stdout, or sentences on stderr; a state is told when it begins and ends."""

    def __init__(self, warn_s: float, *, as_json: bool) -> None:
        self._warn_s = warn_s
        self._json = as_json
        self._late = False
        self._away = False

    def event(self, name: str, sentence: str, **more: object) -> None:
        if self._json:
            line: Record = {"event": name, **more}
            write_bytes(to_json(line).encode("utf-8", "backslashreplace") + b"\n")
        else:
            say(sentence)

    def turn(self, turn: "Turn") -> None:
        if turn.error is not None:
            self._tell_away(turn)
            return
        if self._away:
            self._away = False
            self.event("back", "the database is back")
        if turn.published:
            files = f"{count_of(turn.published, 'publication')} of {count_of(turn.tables, 'table')}"
            self.event("published", files, publications=turn.published, tables=turn.tables)
        if turn.backlog is not None:
            self._tell_lag(turn.backlog.versions, turn.backlog.seconds)

    def _tell_away(self, turn: "Turn") -> None:
        assert turn.error is not None
        if not self._away:
            self._away = True
            sentence = f"warning: {turn.error.message} [{turn.error.code}]; it is tried again"
            self.event("away", sentence, code=turn.error.code, message=turn.error.message)

    def _tell_lag(self, versions: int, lag_s: float) -> None:
        late = lag_s > self._warn_s
        known = {"versions_behind": versions, "lag_s": lag_s, "warn_s": self._warn_s}
        if late and not self._late:
            behind = f"{count_of(versions, 'version')} and {lag_s:.1f} s behind"
            self.event("late", f"warning: publication is {behind}", **known)
        elif self._late and not late:
            self.event("caught_up", "publication has caught up", **known)
        self._late = late


@contextmanager
def _ended_by_signals(stop: threading.Event) -> Iterator[set[int]]:
    """Signals that came; a second SIGINT ends at once, as it would anything."""
    got: set[int] = set()

    def end(number: int, _: object) -> None:
        if number in got and number == signal.SIGINT:
            raise KeyboardInterrupt
        got.add(number)
        stop.set()

    before = {s: signal.signal(s, end) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield got
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
