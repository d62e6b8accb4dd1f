"""The runner of examples notices what it must notice."""

import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).resolve().parents[3] / "scripts" / "run-docs"

RUNS = """
```python
value = 40
```
Text between blocks.
```console
$ echo made > file.txt
$ cat <<END
> several
> lines
> END
$ false  # exit 1
shown output, which is not compared
```
```python
assert value + 2 == 42
assert open("file.txt", encoding="utf-8").read() == "made\\n"
```
```text
not run
```
"""


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(RUNNER), str(page)], capture_output=True, text=True, check=False
    )


def test_blocks_share_a_folder_and_a_namespace(tmp_path: Path) -> None:
    done = run(tmp_path, RUNS)

    assert done.returncode == 0, done.stderr
    assert done.stdout == "several\nlines\n"


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("```console\n$ false\n```\n", "page.md:4: exit 1, expected 0"),
        ("```console\n$ true # exit 2\n```\n", "page.md:4: exit 0, expected 2"),
        ("```console\n$ false | cat\n```\n", "page.md:4: exit 1, expected 0"),
        ("```python\n\n1 / 0\n```\n", 'page.md", line 5'),
    ],
)
def test_failure_names_the_line_of_the_page(tmp_path: Path, block: str, complaint: str) -> None:
    done = run(tmp_path, f"# Title\n\n{block}")

    assert done.returncode != 0
    assert complaint in done.stderr
