"""How many examples a property test tries: the same few in every run, many when looking for new."""

import os

EXPLORING = bool(os.environ.get("LAKEBED_EXPLORE"))


def examples(repeated: int, explored: int) -> int:
    return explored if EXPLORING else repeated
