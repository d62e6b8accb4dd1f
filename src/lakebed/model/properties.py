"""Properties of tables and namespaces: text to text; what we publish ourselves is refused."""

from collections.abc import Iterable, Mapping, Sequence

from lakebed.model.carried import (
    CARRIED,
    DELTA_CLAIMS,
    check_carried,
    is_carried,
    refuse_replaced,
)
from lakebed.model.errors import InvalidSetting
from lakebed.model.history import CHANGE_FEED
from lakebed.model.names import is_text
from lakebed.model.nearest import nearest
from lakebed.model.settings import BY_NAME, SETTINGS, parse_setting

# Published by us from what the table is; a user's value would contradict it.
_OURS = (
    *DELTA_CLAIMS,
    "schema.name-mapping.default",
    "gc.enabled",
    "format-version",
    "current-snapshot",
    "write.format.default",
    "write.metadata.",
    "write.data.path",
    "comment",
)
_OWNED = frozenset({"delta.", *(s.name.partition(".")[0] + "." for s in SETTINGS)})
_MAX_TEXT = 65_536
_MAX_NAME = 1024


def check_properties(properties: Mapping[str, object]) -> dict[str, str]:
    """Of a table: settings are checked by their rules."""
    checked = check_texts(properties)
    for name, text in checked.items():
        if name == CHANGE_FEED:
            checked[name] = _true_or_false(name, text)
            continue
        if is_carried(name):
            check_carried(name, text)
            continue
        refuse_replaced(name)
        if name.startswith(_OURS) and name not in BY_NAME:
            raise InvalidSetting(
                f"property {name!r} is published by lakebed itself",
                hint="leave it out; `comment` is an argument of its own",
                name=name,
            )
        setting = BY_NAME.get(name)
        if setting is None:
            _refuse_unknown(name)
        else:
            if not setting.per_table:
                raise InvalidSetting(
                    f"{name} is a setting of the lake, not of a table",
                    hint="use `lakebed settings set`",
                    name=name,
                )
            checked[name] = str(parse_setting(setting, text))
    return checked


def _refuse_unknown(name: str) -> None:
    """Below prefixes that have a meaning, a name without one is a slip of the pen."""
    prefix = name.partition(".")[0].lower() + "."
    if "." not in name or prefix not in _OWNED:
        return
    known = [*(s.name for s in SETTINGS if s.per_table), *CARRIED, CHANGE_FEED]
    close = nearest(name, known)
    raise InvalidSetting(
        f"there is no property {name!r}",
        hint=f"did you mean {close[0]}?"
        if close
        else f"`lakebed settings` lists those of {prefix}*; other prefixes are free for your own",
        name=name,
    )


def _true_or_false(name: str, text: str) -> str:
    if text.lower() not in ("true", "false"):
        raise InvalidSetting(
            f"property {name!r} = {text!r} is neither true nor false",
            hint="true writes Delta's own change feed from now on",
            name=name,
        )
    return text.lower()


def check_texts(properties: Mapping[str, object]) -> dict[str, str]:
    """Plain names and values that every database and format can hold."""
    if not isinstance(properties, Mapping):
        raise InvalidSetting(
            f"properties are a mapping, not {type(properties).__name__}",
            hint="give {'name': 'value'}",
        )
    checked = {}
    for name, value in properties.items():
        if not isinstance(value, str | int | float):
            raise InvalidSetting(
                f"property {name!r} = {value!r} is not text", hint="properties map text to text"
            )
        text = str(value).lower() if isinstance(value, bool) else str(value)
        _check_name(name)
        if len(text) > _MAX_TEXT or not is_text(text):
            raise InvalidSetting(
                f"the value of property {name!r} is too long, has NUL or is not valid Unicode",
                hint=f"use text of at most {_MAX_TEXT} characters",
                name=name,
            )
        checked[name] = text
    return checked


def check_removed(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InvalidSetting("removed properties are a list", hint="removed=['name']")
    listed = tuple(names)
    for name in listed:
        _check_name(name)
    return listed


def _check_name(name: object) -> None:
    if (
        not isinstance(name, str)
        or not is_text(name)
        or name != name.strip()
        or not 1 <= len(name) <= _MAX_NAME
    ):
        shown = repr(name)
        raise InvalidSetting(
            f"property name {shown if len(shown) <= 100 else shown[:100] + '…'} is not plain text",
            hint=f"use 1 to {_MAX_NAME} characters without surrounding spaces or NUL",
        )
