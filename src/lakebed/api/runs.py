"""Runs of pipelines: what they did, what was made from what, and a run that is under way."""

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Literal

from lakebed.api.active_run import TTL_S, ActiveRun
from lakebed.api.options import CommitOptions, check_number, check_options
from lakebed.api.parts import Parts
from lakebed.model.errors import InvalidInput, PipelineBusy
from lakebed.model.names import parse_table_name
from lakebed.model.runs import LineageEdge, Run, RunReport
from lakebed.security.policy import require

Direction = Literal["up", "down"]
_PAUSE_S = 0.5


class Runs:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def list(self, pipeline: str | None = None, *, limit: int = 20) -> list[Run]:
        """The newest runs, of all pipelines or of one."""
        require(self._parts.principal, "read", "*")
        return self._parts.runs.newest(pipeline, max(0, check_number("limit", limit)))

    def get(self, run_id: str) -> Run:
        """A run by its id, or by the beginning of it where that is enough."""
        require(self._parts.principal, "read", "*")
        return self._parts.runs.get(run_id)

    def lineage(self, table: str, direction: Direction = "up") -> Sequence[LineageEdge]:
        """What a table was made from (up) or what was made from it (down), nearest first."""
        if direction not in ("up", "down"):
            raise InvalidInput(f"there is no direction {direction!r}", hint="use up or down")
        name = parse_table_name(table)
        require(self._parts.principal, "read", str(name))
        head = self._parts.catalog.find(name)
        if direction == "up":
            return self._parts.runs.upstream(head.id)
        return self._parts.runs.downstream(head.id)

    def peek(self, pipeline: str) -> ActiveRun:
        """What a run would see now; it is none, and writes nothing."""
        require(self._parts.principal, "read", "*")
        options = check_options({})
        nothing = Run("", pipeline, "peek", 0, None, options.author, RunReport())
        return ActiveRun(self._parts, nothing, options)

    def begin(
        self,
        pipeline: str,
        *,
        parameters: Mapping[str, str] | None = None,
        author: str | None = None,
        wait_s: float = 0.0,
    ) -> ActiveRun:
        """A run that is the only one of its pipeline; `wait_s`: how long to wait for another."""
        require(self._parts.principal, "write", "*")
        given = CommitOptions(author=author, message=f"pipeline {pipeline}")
        options = check_options(given)
        report = RunReport(dict(parameters or {}))
        give_up = time.monotonic() + wait_s
        run_id = uuid.uuid4().hex[:12]
        while True:
            try:
                run, lost = self._parts.runs.begin(
                    run_id, pipeline, options.author, report, ttl_s=TTL_S
                )
                return ActiveRun(self._parts, run, options, lost)
            except PipelineBusy:
                if time.monotonic() >= give_up:
                    raise
                time.sleep(min(_PAUSE_S, max(0.0, give_up - time.monotonic())))
