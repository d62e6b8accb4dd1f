"""Table properties: text to text; settings are checked, what we publish ourselves is refused."""

from collections.abc import Mapping

from lakebed.model.errors import InvalidSetting
from lakebed.model.settings import BY_NAME, parse_setting

# Published by us from what the table is; a user's value would contradict it.
_OURS = (
    "delta.",
    "schema.name-mapping.default",
    "gc.enabled",
    "format-version",
    "lakebed.",
    "current-snapshot",
    "write.format.default",
    "write.metadata.",
    "write.data.path",
    "comment",
)
_MAX_TEXT = 65_536


def check_properties(properties: Mapping[str, object]) -> dict[str, str]:
    checked = {}
    for name, value in properties.items():
        if not isinstance(value, str | int | float):
            raise InvalidSetting(
                f"property {name!r} = {value!r} is not text", hint="properties map text to text"
            )
        text = str(value).lower() if isinstance(value, bool) else str(value)
        _check_text(name, text)
        setting = BY_NAME.get(name)
        if setting is not None:
            if not setting.per_table:
                raise InvalidSetting(
                    f"{name} is a setting of the lake, not of a table",
                    hint="use `lakebed settings set`",
                    name=name,
                )
            text = str(parse_setting(setting, text))
        checked[name] = text
    return checked


def _check_text(name: str, text: str) -> None:
    if not name or name != name.strip() or "\x00" in name + text or len(text) > _MAX_TEXT:
        raise InvalidSetting(
            f"property {name!r} is empty, has surrounding spaces or NUL, or is too long",
            hint="use a plain name and a shorter value",
        )
    if name.startswith(_OURS):
        raise InvalidSetting(
            f"property {name!r} is published by lakebed itself",
            hint="leave it out; `comment` is an argument of its own",
            name=name,
        )
