"""Named crash points: the steps of multi-step effects, at which tests kill the process."""

import os
import signal

_AT = os.environ.get("LAKEBED_CRASH_AT", "")


def crash_point(name: str) -> None:
    """Die here, as by kill -9, when LAKEBED_CRASH_AT names this point."""
    if _AT and name == _AT:
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
