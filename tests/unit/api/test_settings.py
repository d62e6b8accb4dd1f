"""Call > environment > the lake's row > config.toml > default; each value says where it is from."""

from pathlib import Path

import pytest

import lakebed
from lakebed.api.settings import Resolved
from lakebed.model.errors import InvalidSetting

NAME = "commit.retries"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config" / "lakebed" / "config.toml"
    path.parent.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return path


def found(lake: lakebed.Lake, name: str = NAME) -> tuple[object, str]:
    each: Resolved = next(r for r in lake.settings() if r.setting.name == name)
    return each.value, each.source


def test_each_source_goes_before_the_next(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lake"
    with lakebed.open(folder, create=True) as lake:
        assert found(lake) == (5, "default")

    config.write_text("[commit]\nretries = 1\n")
    with lakebed.open(folder) as lake:
        assert found(lake) == (1, str(config))

        lake.set_setting(NAME, 2)
        assert found(lake) == (2, "lake")

    monkeypatch.setenv("LAKEBED_COMMIT_RETRIES", "3")
    with lakebed.open(folder) as lake:
        assert found(lake) == (3, "LAKEBED_COMMIT_RETRIES")
    with lakebed.open(folder, settings={NAME: 4}) as lake:
        assert found(lake) == (4, "call")

        lake.set_setting(NAME, None)
    monkeypatch.delenv("LAKEBED_COMMIT_RETRIES")
    with lakebed.open(folder) as lake:
        assert found(lake) == (1, str(config))


def test_a_setting_kept_by_one_handle_is_seen_by_another(tmp_path: Path) -> None:
    with (
        lakebed.open(tmp_path / "lake", create=True) as one,
        lakebed.open(tmp_path / "lake") as two,
    ):
        one.set_setting(NAME, 7)

        assert found(two) == (7, "lake")


def test_a_tables_property_goes_before_everything_but_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEBED_PUBLISH_MODE", "commit")
    with lakebed.open(tmp_path / "lake", create=True) as lake:
        table = lake.create_table(
            "a.t", "id long", properties={"publish.mode": "background"}, publish="commit"
        )

        assert not table.append([{"id": 1}]).published
        assert table.append([{"id": 2}], publish="commit").published
    with lakebed.open(tmp_path / "lake", settings={"publish.mode": "commit"}) as lake:
        assert lake.table("a.t").append([{"id": 3}]).published


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bogus", 1),
        (5, 1),
        ("commit.retries", "many"),
        ("commit.retries", -1),
        ("commit.retries", 1.5),
        ("publish.mode", "never"),
        ("publish.formats", "hudi"),
        ("publish.formats", 5),
        ("publish.retry.base-s", "nan"),
        ("publish.retry.base-s", "inf"),
        ("write.target-file-size-bytes", "12 furlongs"),
        ("write.target-file-size-bytes", "1kb"),
    ],
)
def test_a_bad_setting_is_not_kept(lake: lakebed.Lake, name: str, value: object) -> None:
    before = lake.settings()

    with pytest.raises(InvalidSetting):
        lake.set_setting(name, value)

    assert lake.settings() == before


@pytest.mark.parametrize("text", ["retries = [", "[commit]\nretry = 1\n", "bogus = 1\n"])
def test_a_bad_config_file_is_named(tmp_path: Path, config: Path, text: str) -> None:
    config.write_text(text)

    with pytest.raises(InvalidSetting):
        lakebed.open(":memory:")


def test_a_bad_variable_is_refused_where_it_is_used(
    lake: lakebed.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEBED_COMMIT_RETRIES", "many")

    with pytest.raises(InvalidSetting, match=r"commit\.retries = 'many'"):
        lake.settings()


def test_sizes_may_have_units(lake: lakebed.Lake) -> None:
    lake.set_setting("write.target-file-size-bytes", "1.5 MiB")

    assert found(lake, "write.target-file-size-bytes") == (1_572_864, "lake")
