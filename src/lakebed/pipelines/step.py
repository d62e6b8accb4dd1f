"""A step: a function from inputs to one table, and how its rows get into that table."""

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from lakebed.model.errors import PipelineInvalid
from lakebed.model.names import parse_table_name
from lakebed.pipelines.expectations import Expectation, expectations_of
from lakebed.pipelines.inputs import Changes, Current, Files, Input, Jdbc, Source
from lakebed.pipelines.parameters import Parameter, parameter_of

Mode = Literal["append", "merge", "replace", "replace_partitions", "scd2"]
MODES: tuple[Mode, ...] = get_args(Mode)
KEYED = ("merge", "scd2")
VANISHED = ("keep", "close")
SESSION = "spark"  # a parameter of this name without a default is given the session
VALID_FROM, VALID_TO, IS_CURRENT = "valid_from", "valid_to", "is_current"


@dataclass(frozen=True, slots=True)
class Output:
    """The table that a step makes, and how rows get there."""

    table: str
    mode: Mode
    key: tuple[str, ...] = ()
    op: str | None = None  # the column of the result that says `delete`
    sequence_by: str | None = None
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()
    schema: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    vanished: str = "keep"  # of scd2: what becomes of a key that the result has no more


@dataclass(frozen=True, slots=True)
class Step:
    name: str  # of the function
    output: Output
    function: Callable[..., object]
    inputs: Mapping[str, Input]
    parameters: tuple[Parameter, ...]
    expectations: tuple[Expectation, ...]
    place: str  # file:line of the function
    file: str
    wants_session: bool = False

    @property
    def table(self) -> str:
        return self.output.table

    @property
    def tables_read(self) -> tuple[str, ...]:
        """Tables whose rows it or its expectations look at."""
        read = [i.table for i in self.inputs.values() if isinstance(i, Current | Changes)]
        read += [e.table for e in self.expectations if e.table is not None]
        return tuple(dict.fromkeys(t for t in read if t != self.table))

    @property
    def quarantines(self) -> tuple[str, ...]:
        found = (e.quarantine for e in self.expectations if e.quarantine is not None)
        return tuple(dict.fromkeys(found))

    @property
    def made(self) -> tuple[str, ...]:
        """Every table that it writes to."""
        beside = side_table(self.output)
        return (self.table, *self.quarantines, *(() if beside is None else (beside,)))

    @property
    def digest(self) -> str:
        """Changes when what the step does changes."""
        try:
            text = inspect.getsource(self.function)
        except (OSError, TypeError):
            code = getattr(self.function, "__code__", None)
            text = repr(code.co_code if code else self.function)
        said = repr((self.output, sorted(i.key for i in self.inputs.values())))
        return hashlib.sha256((said + text).encode()).hexdigest()[:32]


def side_table(output: Output) -> str | None:
    """What rows that come late are compared with, where the table itself does not show it."""
    if output.sequence_by is None or output.sequence_by in output.key:
        return None
    if output.mode == "scd2":
        return f"{output.table}_events"
    return f"{output.table}_deleted" if output.op is not None else None


def make_step(function: Callable[..., object], output: Output, name: str | None) -> Step:
    """Everything that can be known of a step without running it is checked here."""
    if not callable(function):
        raise PipelineInvalid(f"step {output.table} is no function", hint="put @p.step above a def")
    signature = inspect.signature(function)
    inputs: dict[str, Input] = {}
    parameters = []
    wants_session = False
    for argument in signature.parameters.values():
        if argument.kind in (
            argument.VAR_POSITIONAL,
            argument.VAR_KEYWORD,
            argument.POSITIONAL_ONLY,
        ):
            raise PipelineInvalid(
                f"step {output.table}: the function takes {argument}, which has no name of its own",
                hint="name every input and parameter",
            )
        if isinstance(argument.default, Current | Changes | Files | Jdbc | Source):
            inputs[argument.name] = argument.default
        elif argument.name == SESSION and argument.default is argument.empty:
            wants_session = True
        else:
            parameters.append(parameter_of(argument))
    place, file = _place(function)
    step = Step(
        name or str(getattr(function, "__name__", output.table)),
        output,
        function,
        inputs,
        tuple(parameters),
        expectations_of(function),
        place,
        file,
        wants_session,
    )
    _check(step)
    return step


def make_output(
    table: str,
    mode: str | None,
    key: str | Sequence[str] | None,
    *,
    op: str | None,
    sequence_by: str | None,
    partition_by: str | Sequence[str],
    sort_by: str | Sequence[str],
    schema: str | None,
    properties: Mapping[str, str] | None,
    comment: str | None,
    vanished: str,
) -> Output:
    names = _names(key or ())
    chosen = mode or ("merge" if names else "append")
    if chosen not in MODES:
        raise PipelineInvalid(
            f"step {table}: there is no mode {chosen!r}", hint=f"use one of: {', '.join(MODES)}"
        )
    return Output(
        str(parse_table_name(table)),
        chosen,
        names,
        op,
        sequence_by,
        _names(partition_by),
        _names(sort_by),
        schema,
        dict(properties or {}),
        comment,
        vanished,
    )


def _check(step: Step) -> None:
    out = step.output
    if out.mode in KEYED and not out.key:
        raise PipelineInvalid(
            f"step {out.table} ({step.place}): mode {out.mode!r} needs a key",
            hint='name the columns that tell rows apart: key="id"',
        )
    if out.mode not in KEYED and (out.op or out.sequence_by):
        raise PipelineInvalid(
            f"step {out.table} ({step.place}): op and sequence_by are for merge and scd2, not"
            f" {out.mode}",
            hint='give key="…", or leave them out',
        )
    _check_vanished(step)
    if out.mode == "replace_partitions" and not out.partition_by:
        raise PipelineInvalid(
            f"step {out.table} ({step.place}): mode 'replace_partitions' needs partitions",
            hint='partition_by=["day"]',
        )
    if not step.inputs and not step.wants_session:
        raise PipelineInvalid(
            f"step {out.table} ({step.place}) has no input",
            hint='give an argument one: def orders(raw=changes("bronze.orders"))',
        )
    reads_itself = [
        i for i in step.inputs.values() if isinstance(i, Current | Changes) and i.table == out.table
    ]
    if reads_itself:
        raise PipelineInvalid(
            f"step {out.table} ({step.place}) reads the table that it makes",
            hint="merge and scd2 look at the rows there are by themselves",
        )


def _check_vanished(step: Step) -> None:
    out = step.output
    if out.vanished not in VANISHED:
        raise PipelineInvalid(
            f"step {out.table} ({step.place}): there is no vanished={out.vanished!r}",
            hint=f"use one of: {', '.join(VANISHED)}",
        )
    parts = [i.key for i in step.inputs.values() if isinstance(i, Changes | Files)]
    if out.vanished == "keep" or (out.mode == "scd2" and not parts):
        return
    why = f"not a part of it: {parts[0]}" if parts else f"and is for scd2, not {out.mode}"
    raise PipelineInvalid(
        f"step {out.table} ({step.place}): vanished='close' needs all rows in every run, {why}",
        hint="read the whole of it: current(…), jdbc(…) or source(…)",
    )


def _place(function: Callable[..., object]) -> tuple[str, str]:
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return "unknown place", ""
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}", code.co_filename


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
