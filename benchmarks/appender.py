"""A process that appends rows one by one: `python -m benchmarks.appender`, told by standard input.

It opens its tables, says so, waits for the word to begin, and answers with how long each took.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import lakebed
from benchmarks.measures.appending import row


def main() -> None:
    order = json.loads(sys.stdin.readline())
    lake = lakebed.open(order["lake"])
    tables = [lake.table(name) for name in order["tables"]]
    threads, first = order["threads"], order["first"]
    tables[0].append([row(first)])  # what a process does once comes before the clock
    print("open", flush=True)
    sys.stdin.readline()
    waits: list[float] = []

    def work(thread: int) -> None:
        table = tables[thread % len(tables)]
        for n in range(first + 1 + thread, first + 1 + order["commits"], threads):
            begun = time.perf_counter()
            table.append([row(n)])
            waits.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    print(json.dumps({"waits": waits, "wall_s": time.perf_counter() - begun}), flush=True)
    lake.close()


if __name__ == "__main__":
    main()
