"""A bound sieve over Arrow batches: TRUE or not, or a refusal where a number does not fit."""

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.engines.arrow.evaluate import KERNELS
from lakebed.model.expressions import Column
from lakebed.model.sieve import Arithmetic, Sieve, Sign, Term

_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


class DoesNotFit(Exception):
    """A sum is too great for its type: the SQL engine says what becomes of it."""


def sift(sieve: Sieve, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows for which every comparison is TRUE."""
    try:
        answers = [
            KERNELS[c.operator](_value(c.left, batch), _value(c.right, batch))
            for c in sieve.comparisons
        ]
    except pa.ArrowInvalid as error:
        raise DoesNotFit from error
    return batch.filter(reduce(pc.and_kleene, answers))


def _value(term: Term, batch: pa.RecordBatch) -> pa.Array | pa.Scalar:
    match term:
        case int():
            return pa.scalar(term, pa.int64())
        case Column(path):
            return batch.column(path[0]).cast(pa.int64())
        case Arithmetic(sign, left, right, bits):
            found = _computed(sign, _value(left, batch), _value(right, batch))
            if bits < 64:
                _refuse_wide(found)
            return found


def _computed(sign: Sign, left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> pa.Array:
    if sign == "%":
        # Division cuts towards zero, so that the remainder has the sign of what is divided.
        return pc.subtract(left, pc.multiply(pc.divide(left, right), right))
    return _CHECKED[sign](left, right)


def _refuse_wide(values: pa.Array) -> None:
    bounds = pc.min_max(values)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is not None and (low < _LOWEST or high > _HIGHEST):
        raise DoesNotFit
