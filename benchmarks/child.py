"""One job in a process of its own: make a table, or open it and time one call."""

import gc
import json
import os
import resource
import sys
import time
from pathlib import Path

from benchmarks.measure import Case, Fact
from benchmarks.measures import MEASURES

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


def main(order: dict[str, str], case: Case) -> None:
    system = MEASURES[order["measure"]].systems[order["system"]]
    folder, data = Path(order["folder"]), Path(order["data"])
    answer: dict[str, object] = {"cpu_s": 0.0, "wall_s": 0.0, "peak_bytes": 0, "facts": {}}
    if order["job"] == "make":
        system.make(folder, case, data)
    else:
        call = system.open(folder, case, data)
        gc.collect()
        _forget_peak()
        children, cpu, wall = _children_s(), time.process_time(), time.perf_counter()
        result = call.run()
        answer["wall_s"] = time.perf_counter() - wall
        answer["cpu_s"] = time.process_time() - cpu + _children_s() - children
        answer["peak_bytes"] = _peak_bytes()
        facts: dict[str, Fact] = call.facts(result)
        answer["facts"] = facts
    Path(order["answer"]).write_text(json.dumps(answer, default=str))


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _forget_peak() -> None:
    """Linux can begin anew; elsewhere the peak is that of the whole process so far."""
    if _CLEAR.exists():
        _CLEAR.write_text("5")


def _peak_bytes() -> int:
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    main(given, Case(**given.pop("case")))
    # What is measured is over. Peers' threads that still run at the end of the interpreter can
    # abort the process (seen with deltalake: "terminate called without an active exception").
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
