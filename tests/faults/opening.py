"""Processes that create, use and close the same lakes in the same moment."""

import os
import sys
import time
import traceback
from contextlib import suppress

import lakebed
import lakebed.api.lake
import lakebed.formats.delta.publish
import lakebed.formats.iceberg.publish
import lakebed.meta.postgres
import lakebed.meta.sqlite

PROCESSES, TIMES = 6, 2


def use(uri: str, warehouse: str, number: int) -> None:
    for n in range(TIMES):
        with lakebed.open(uri, create=True, warehouse=warehouse or None) as lake:
            with suppress(lakebed.TableExists):
                lake.create_table("a.t", "id long not null, word string")
            table = lake.table("a.t")
            assert table.append([{"id": number * TIMES + n, "word": "w"}]).published


def start(uri: str, warehouse: str, number: int, moment: float) -> int:
    child = os.fork()
    if child == 0:
        try:
            time.sleep(max(0.0, moment - time.monotonic()))
            use(uri, warehouse, number)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


if __name__ == "__main__":
    for uri in sys.argv[2:]:
        moment = time.monotonic() + 0.05
        children = [start(uri, sys.argv[1], n, moment) for n in range(PROCESSES)]
        codes = [os.waitpid(child, 0)[1] for child in children]
        if any(codes):
            sys.exit(1)
