"""Parameters of a run: arguments of steps that are no inputs, given as `--param name=value`."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from lakebed.model.errors import PipelineInvalid

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def _boolean(text: str) -> bool:
    return _BOOLEANS[text.strip().casefold()]


_READERS: dict[object, Callable[[str], object]] = {
    bool: _boolean,
    int: int,
    float: float,
    Decimal: Decimal,
    date: date.fromisoformat,
    datetime: datetime.fromisoformat,
    str: str,
}
_NAMED = {kind.__name__: kind for kind in _READERS if isinstance(kind, type)}


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    kind: type
    required: bool
    default: object = None


def parameter_of(argument: inspect.Parameter) -> Parameter:
    """Its type is what the function says, or that of the default; text otherwise."""
    required = argument.default is argument.empty
    said = argument.annotation
    kind = _NAMED.get(said) if isinstance(said, str) else said if said in _READERS else None
    if kind is None and not required and type(argument.default) in _READERS:
        kind = type(argument.default)
    return Parameter(argument.name, kind or str, required, None if required else argument.default)


def bind_parameters(
    wanted: Iterable[Parameter], given: Mapping[str, object], step: str
) -> dict[str, object]:
    """Values for one step; text is read as the parameter's type."""
    bound = {}
    for parameter in wanted:
        if parameter.name in given:
            bound[parameter.name] = _read(parameter, given[parameter.name], step)
        elif parameter.required:
            raise PipelineInvalid(
                f"step {step} needs the parameter {parameter.name!r}",
                hint=f"give it: --param {parameter.name}=VALUE",
            )
        else:
            bound[parameter.name] = parameter.default
    return bound


def refuse_unknown(given: Mapping[str, object], wanted: Iterable[Parameter]) -> None:
    known = sorted({p.name for p in wanted})
    unknown = sorted(given.keys() - set(known))
    if unknown:
        raise PipelineInvalid(
            f"no step has a parameter {unknown[0]!r}",
            hint=f"the parameters are: {', '.join(known) or 'none'}",
        )


def _read(parameter: Parameter, value: object, step: str) -> object:
    if not isinstance(value, str) or parameter.kind is str:
        return value
    try:
        return _READERS[parameter.kind](value)
    except (KeyError, ValueError, InvalidOperation):
        raise PipelineInvalid(
            f"step {step}: parameter {parameter.name} is {value!r}, which is no"
            f" {parameter.kind.__name__}",
            hint=f"give a {parameter.kind.__name__}",
        ) from None
