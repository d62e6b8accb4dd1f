"""OpenLineage events of a run, sent when LAKEBED_OPENLINEAGE_URL names an endpoint."""

import json
import os
import urllib.request
import warnings
from datetime import UTC, datetime

from lakebed.model.runs import Run, RunAttachment

VARIABLE = "LAKEBED_OPENLINEAGE_URL"
_PRODUCER = "https://lakebed.dev"
_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_TIMEOUT_S = 5.0


class LineageWarning(UserWarning):
    """An event was not taken; the run goes on."""


class LineageEvents:
    def __init__(self, pipeline: str, run: Run) -> None:
        self._url = os.environ.get(VARIABLE)
        self._pipeline = pipeline
        self._run = run

    def started(self) -> None:
        self._send("START", self._run.started_ms)

    def completed(self, run: Run, attachment: RunAttachment) -> None:
        inputs = {d.input for d in attachment.derivations} - run.report.written.keys()
        self._send("COMPLETE", run.finished_ms, sorted(inputs), sorted(run.report.written))

    def failed(self, run: Run) -> None:
        kind = "ABORT" if run.status == "interrupted" else "FAIL"
        self._send(kind, run.finished_ms or run.started_ms)

    def _send(
        self,
        kind: str,
        time_ms: int | None,
        inputs: list[str] | None = None,
        outputs: list[str] | None = None,
    ) -> None:
        if not self._url:
            return
        event = {
            "eventType": kind,
            "eventTime": datetime.fromtimestamp((time_ms or 0) / 1000, UTC).isoformat(),
            "producer": _PRODUCER,
            "schemaURL": _SCHEMA,
            "run": {"runId": _uuid(self._run.id)},
            "job": {"namespace": "lakebed", "name": self._pipeline},
            "inputs": [{"namespace": "lakebed", "name": name} for name in inputs or ()],
            "outputs": [{"namespace": "lakebed", "name": name} for name in outputs or ()],
        }
        try:
            if not self._url.startswith(("http://", "https://")):
                raise ValueError("it is no http address")
            request = urllib.request.Request(  # noqa: S310 - checked above
                self._url,
                json.dumps(event).encode(),
                {"Content-Type": "application/json"},
                method="POST",
            )
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S):  # noqa: S310 - as above
                return
        except (OSError, ValueError) as error:
            warnings.warn(
                f"{VARIABLE}: the event was not taken: {error}", LineageWarning, stacklevel=2
            )


def _uuid(run_id: str) -> str:
    """OpenLineage asks for a UUID; ours are the last part of one."""
    return f"00000000-0000-4000-8000-{run_id:0>12}"
