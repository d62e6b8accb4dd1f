"""Jobs in a process of their own: make a table, or open it and time one call."""

import gc
import json
import os
import sys
import time
from pathlib import Path

from benchmarks import usage
from benchmarks.measure import Case, Fact
from benchmarks.measures import MEASURES


def main(order: dict[str, str], case: Case) -> dict[str, object]:
    system = MEASURES[order["measure"]].systems[order["system"]]
    folder, data = Path(order["folder"]), Path(order["data"])
    answer: dict[str, object] = {"cpu_s": 0.0, "wall_s": 0.0, "peak_bytes": 0, "facts": {}}
    if order["job"] == "make":
        system.make(folder, case, data)
    else:
        call = system.open(folder, case, data)
        gc.collect()
        usage.forget_peak()
        below = usage.below_s()
        wall, cpu = time.perf_counter(), time.process_time()
        result = call.run()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        answer["wall_s"] = wall
        answer["cpu_s"] = cpu + usage.below_s() - below
        answer["peak_bytes"] = usage.peak_bytes()
        facts: dict[str, Fact] = call.facts(result)
        answer["facts"] = facts
    return answer


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1]), "w") as answers:
        for line in sys.stdin:
            given = json.loads(line)
            answers.write(json.dumps(main(given, Case(**given.pop("case"))), default=str) + "\n")
            answers.flush()
    # What is measured is over. Peers' threads that still run at the end of the interpreter can
    # abort the process (seen with deltalake: "terminate called without an active exception").
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
