"""A thread for what writers leave behind: background publication and checkpoints, and upkeep."""

import logging
import threading
from collections.abc import Callable

from lakebed.model.errors import LakebedError
from lakebed.model.ids import TableId

_log = logging.getLogger("lakebed.publish")


class Worker:
    """Starts with its first work; what it leaves behind, the next process picks up."""

    def __init__(self, name: str, work: Callable[[TableId], object]) -> None:
        """`work` gives True when there is more to do of the table, after other tables."""
        self._name = name
        self._work = work
        self._tables: dict[TableId, None] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = False
        self._closing = False

    def notify(self, table_id: TableId) -> None:
        with self._changed:
            if self._closing:
                return
            self._tables[table_id] = None
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._run, name=f"lakebed-{self._name}", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def wait(self, timeout_s: float) -> bool:
        """Until nothing is left to do; False when it took longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._tables and not self._busy, timeout_s)

    def close(self, timeout_s: float) -> None:
        """Finish what is under way, then stop."""
        self.wait(timeout_s)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._busy, timeout_s)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._tables or self._closing)
                if self._closing:
                    return
                table_id = next(iter(self._tables))
                del self._tables[table_id]
                self._busy = True
            try:
                if self._work(table_id) is True:
                    with self._changed:
                        self._tables[table_id] = None
            except LakebedError as error:
                _log.warning("in the background (%s): %s", self._name, error.message)
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()
