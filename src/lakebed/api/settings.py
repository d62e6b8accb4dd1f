"""Where a setting's value comes from: call > LAKEBED_* > the lake's row > config.toml > default."""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lakebed.model.errors import InvalidSetting
from lakebed.model.settings import (
    BY_NAME,
    SETTINGS,
    Setting,
    Value,
    find_setting,
    parse_setting,
)


@dataclass(frozen=True, slots=True)
class Resolved:
    setting: Setting
    value: Value
    source: str


@cache
def variable_of(name: str) -> str:
    return "LAKEBED_" + name.upper().replace(".", "_").replace("-", "_")


class Settings:
    """Sources in order of weight; the lake's own row may change while it is open."""

    def __init__(self, call: Mapping[str, object], lake: Mapping[str, str]) -> None:
        self._call = {name: parse_setting(find_setting(name), v) for name, v in call.items()}
        self._config = _config()
        self._lake = dict(lake)

    def replace_lake(self, lake: Mapping[str, str]) -> None:
        self._lake = dict(lake)

    def for_call(self, call: Mapping[str, Value]) -> "Settings":
        """The same sources, with the values of one call before them."""
        return Settings({**self._call, **call}, self._lake)

    def value(self, name: str, properties: Mapping[str, str] | None = None) -> Value:
        """A table's property goes before everything but the call."""
        if properties and name in properties and BY_NAME[name].per_table and name not in self._call:
            return parse_setting(BY_NAME[name], properties[name])
        return self.resolve(BY_NAME[name]).value

    def resolve(self, setting: Setting) -> Resolved:
        name, variable = setting.name, variable_of(setting.name)
        if name in self._call:
            return Resolved(setting, self._call[name], "call")
        if variable in os.environ:
            return Resolved(setting, parse_setting(setting, os.environ[variable]), variable)
        if name in self._lake:
            return Resolved(setting, parse_setting(setting, self._lake[name]), "lake")
        if name in self._config:
            path, value = self._config[name]
            return Resolved(setting, parse_setting(setting, value), path)
        return Resolved(setting, setting.default, "default")

    def all(self) -> list[Resolved]:
        return [self.resolve(s) for s in SETTINGS]


def _config() -> dict[str, tuple[str, object]]:
    """Flat names of the user's config.toml: `[publish] mode = …` is `"publish.mode" = …`."""
    base = os.environ.get("XDG_CONFIG_HOME")
    path = Path(base or "~/.config").expanduser() / "lakebed" / "config.toml"
    try:
        text = path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except (OSError, UnicodeError) as error:
        raise InvalidSetting(
            f"{path} cannot be read: {error}", hint="correct or remove it"
        ) from error
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidSetting(
            f"{path} is not valid TOML: {error}", hint="correct or remove the file"
        ) from error
    found: dict[str, tuple[str, object]] = {}
    _flatten("", tree, str(path), found)
    for name in found:
        find_setting(name)
    return found


def _flatten(
    prefix: str, tree: Mapping[str, object], path: str, found: dict[str, tuple[str, object]]
) -> None:
    for key, value in tree.items():
        if isinstance(value, dict):
            _flatten(f"{prefix}{key}.", value, path, found)
        else:
            found[prefix + key] = (path, value)
