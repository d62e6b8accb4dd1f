"""The docs name everything a user can meet, their links lead somewhere, and their examples run."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from lakebed.cli.main import main
from lakebed.model import errors, settings
from scripts.generate_docs import PAGES as GENERATED
from tests.lean import C1, lean_environment

REPO = Path(__file__).resolve().parent.parent
EXAMPLES = [REPO / "README.md", *sorted((REPO / "docs" / "guides").glob("*.md"))]
PAGES = [*REPO.glob("*.md"), *sorted((REPO / "docs").rglob("*.md"))]
PROSE = {
    page: page.read_text(encoding="utf-8") for page in PAGES if page.parent.name != "reference"
}
ALL_PROSE = "\n".join(PROSE.values())

LINK = re.compile(r"\]\(([^)#\s]+)")
REPO_PATH = re.compile(r"`((?:src|tests|docs|scripts|examples|benchmarks|\.ci)/[^`\s]*)`")


def kinds_of(kind: type[errors.LakebedError]) -> Iterator[type[errors.LakebedError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from kinds_of(below)


def commands_of(command: click.Command, path: str) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        if below is not None and not below.hidden:
            yield from commands_of(below, f"{path} {name}")


def names_in(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text) is not None


@pytest.mark.parametrize("code", sorted({kind.code for kind in kinds_of(errors.LakebedError)}))
def test_error_code_is_explained(code: str) -> None:
    assert f"`{code}`" in (REPO / "docs" / "errors.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("setting", sorted(setting.name for setting in settings.SETTINGS))
def test_setting_is_documented(setting: str) -> None:
    reference = (REPO / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")

    assert names_in(reference, setting)


@pytest.mark.parametrize("command", sorted(commands_of(main, "lakebed")))
def test_command_appears_in_a_page_written_by_hand(command: str) -> None:
    assert names_in(ALL_PROSE, command)


@pytest.mark.parametrize("page", GENERATED)
def test_generated_page_is_up_to_date(page: str) -> None:
    written = (REPO / page).read_text(encoding="utf-8")

    assert written == GENERATED[page](), "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPO)))
def test_every_path_of_the_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [link for link in LINK.findall(text) if "://" not in link]

    missing = [link for link in links if not (page.parent / link).exists()]
    missing += [path for path in REPO_PATH.findall(text) if not mentioned_path_exists(path)]

    assert not missing


@pytest.mark.parametrize(
    "page",
    # Guides start dozens of processes: those of the README are enough for the quick check.
    [pytest.param(p, marks=() if p.name == "README.md" else pytest.mark.slow) for p in EXAMPLES],
    ids=[str(p.relative_to(REPO)) for p in EXAMPLES],
)
def test_examples_of_the_page_run(page: Path) -> None:
    run = [sys.executable, str(REPO / "scripts" / "run-docs"), str(page)]

    # What starts Spark is small: compiling its code well would cost more than it saves.
    lean = os.environ | {"JDK_JAVA_OPTIONS": C1} if page.name == "README.md" else lean_environment()
    done = subprocess.run(run, capture_output=True, text=True, check=False, env=lean)

    assert done.returncode == 0, done.stdout + done.stderr


def test_readme_shows_python_and_the_command_line() -> None:
    assert "\n```python\n" in PROSE[REPO / "README.md"]
    assert "\n```console\n" in PROSE[REPO / "README.md"]


def mentioned_path_exists(mention: str) -> bool:
    """A path, a pattern, or `path::test_name`."""
    path, _, test = mention.partition("::")
    found = list(REPO.glob(path.rstrip("/")))
    return bool(found) and (not test or f"def {test}(" in found[0].read_text(encoding="utf-8"))
