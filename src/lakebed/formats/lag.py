"""How far publication is behind, told once when that is too far and once when it is over."""

import logging
import threading
import time
from collections.abc import Callable

from lakebed.core.outbox import Outbox
from lakebed.model.history import Backlog

_log = logging.getLogger("lakebed.publish")
_LOOK_S = 1.0  # between two looks at the outbox


class LagWatch:
    """Thread-safe. `warn_s` gives the seconds that are too many."""

    def __init__(self, outbox: Outbox, warn_s: Callable[[], float]) -> None:
        self._outbox = outbox
        self._warn_s = warn_s
        self._late = False
        self._looked = 0.0
        self._mutex = threading.Lock()

    def look(self) -> Backlog | None:
        """What waits now; None when somebody looked a moment ago."""
        with self._mutex:
            if time.monotonic() - self._looked < _LOOK_S:
                return None
            self._looked = time.monotonic()
        found = self._outbox.backlog()
        self._tell(found)
        return found

    def _tell(self, found: Backlog) -> None:
        late = found.seconds > self._warn_s()
        with self._mutex:
            was_late, self._late = self._late, late
        if late and not was_late:
            message = "publication is %s versions and %.1f s behind (publish.lag-warn-s is %g)"
            _log.warning(message, found.versions, found.seconds, self._warn_s())
        elif was_late and not late:
            _log.info("publication has caught up: %s versions wait", found.versions)
