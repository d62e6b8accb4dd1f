"""Habits that no linter checks: sizes, dead modules, banned calls, late imports, leftovers.

A limit once met never loosens: lower it when the code allows, never raise it.
"""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
SOURCE = REPO / "src"
MODULES = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}

LONGEST_FUNCTION = 70
LONGEST_FILE = 600
MOST_POSITIONAL = 5
LARGEST_FILE_BYTES = 500_000

BANNED_CALLS = {
    "print": "return the text, or log it; only a command prints",
    "time.time": "take the time as an argument; api/open.py holds the clock",
    "datetime.now": "take the time as an argument; api/open.py holds the clock",
    "datetime.utcnow": "take the time as an argument; api/open.py holds the clock",
    "__import__": "write an import statement; import-linter does not see this one",
    "importlib.import_module": "write an import statement; import-linter does not see this one",
}
# Where a banned call or form is right, with the reason.
PRINTS = ("lakebed/cli/",)  # a command's output
CLOCKS = ("lakebed/api/open.py",)  # the one place where the clock is chosen
CATCHES_ALL = (
    "lakebed/cli/",  # a door turns every failure into an exit code
    "lakebed/api/writer.py",  # what a flush in the background met is raised by the next call
    "lakebed/core/commit.py",  # a batch that fails hands its error to every member
    "lakebed/formats/publish",  # the worker reports and goes on with the next table
    "lakebed/pipelines/",  # a door: what users' functions raise becomes one message
    "lakebed/meta/store.py",  # each driver has its own classes; it translates them
)
BUILDS_SQL = ("lakebed/engines/duckdb/",)  # its DDL binds no parameters; names are quoted there
IMPORTS_LATE = (  # optional parts and lazy public names
    "lakebed/cli/",
    "lakebed/api/open.py",
    "lakebed/engines/__init__.py",
    "lakebed/storage/open.py",  # a worker opens a warehouse by its URI, without api/open.py
    "lakebed/__init__.py",
    "pyspark_lakebed/__init__.py",  # Spark imports it in every process
)
POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
PLATFORM_ONLY = {*POSIX_ONLY, "msvcrt", "winreg"}
ENTRY_POINTS = {"lakebed", "lakebed.__main__", "lakebed.cli.main"}
MARKER = re.compile(r"\b(?:T[O]DO|FIX[M]E|H[A]CK)\b(?!.*#\d+)")  # brackets hide it from itself


@pytest.mark.parametrize("name", MODULES)
def test_module_is_short_and_says_what_it_is(name: str) -> None:
    lines = MODULES[name].read_text(encoding="utf-8").count("\n")

    assert lines <= LONGEST_FILE, f"{lines} lines: split it by noun or verb"
    assert ast.get_docstring(TREES[name]) or not TREES[name].body, "no module docstring"


@pytest.mark.parametrize("name", MODULES)
def test_functions_are_short_with_few_positional_parameters(name: str) -> None:
    for function in functions(TREES[name]):
        lines = (function.end_lineno or 0) - function.lineno + 1
        names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        positional = [argument for argument in names if argument not in {"self", "cls"}]
        where = f"{name}:{function.lineno} {function.name}"

        assert lines <= LONGEST_FUNCTION, f"{where}: {lines} lines"
        assert len(positional) <= MOST_POSITIONAL, f"{where}: make parameters keyword-only"


@pytest.mark.parametrize("name", MODULES)
def test_no_banned_call_or_form(name: str) -> None:
    assert list(banned(name)) == []


@pytest.mark.parametrize("name", MODULES)
def test_imports_stand_at_the_top(name: str) -> None:
    late = [
        f"{name}:{node.lineno}"
        for function in functions(TREES[name])
        for node in ast.walk(function)
        if isinstance(node, ast.stmt) and set(own_imports(node)) - PLATFORM_ONLY
    ]

    assert not late or name.startswith(IMPORTS_LATE)


@pytest.mark.parametrize("name", MODULES)
def test_posix_only_modules_are_guarded(name: str) -> None:
    """Under `if sys.platform …` or `try`, so that the package can be imported everywhere."""
    plain = {target for node in TREES[name].body for target in own_imports(node)}

    assert plain & POSIX_ONLY == set()


def test_every_module_is_imported_by_another() -> None:
    imported = {target for name, tree in TREES.items() for target in imports(tree)}

    packages = {module_name(name) for name in MODULES if name.endswith("/__init__.py")}
    unused = {module_name(name) for name in MODULES} - packages - imported - ENTRY_POINTS
    assert not unused


def test_every_public_name_is_used() -> None:
    """A top-level function or class is used in the package, decorated, or public."""
    texts = [path.read_text(encoding="utf-8") for path in MODULES.values()]
    uses = Counter(word for text in texts for word in re.findall(r"\w+", text))
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

    unused = [
        f"{name}:{node.lineno} {node.name}"
        for name, tree in TREES.items()
        for node in tree.body
        if isinstance(node, definitions) and not (isinstance(node, ast.FunctionDef) and hooks(node))
        if uses[node.name] == 1 and not (isinstance(node, ast.ClassDef) and "errors" in name)
    ]

    assert not unused


def test_no_leftover_marker_without_an_issue_number() -> None:
    found = [
        f"{path}:{number}"
        for path in tracked()
        if path.suffix in {".py", ".sql", ".sh", ".toml", ".md", ""}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if MARKER.search(line)
    ]

    assert not found


def test_no_large_file_is_tracked() -> None:
    assert [path for path in tracked() if path.stat().st_size > LARGEST_FILE_BYTES] == []


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def hooks(function: ast.FunctionDef) -> bool:
    """Decorators (commands, fixtures) and module hooks are called by others."""
    return bool(function.decorator_list) or function.name.startswith("__")


def banned(name: str) -> Iterator[str]:
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.ExceptHandler) and not name.startswith(CATCHES_ALL):
            every = node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"}
            if every and not isinstance(node.body[-1], ast.Raise):  # passing it on is fine
                yield f"{name}:{node.lineno} catches everything: name the errors it can handle"
        elif isinstance(node, ast.Call):
            yield from banned_call(name, node)


def banned_call(name: str, call: ast.Call) -> Iterator[str]:
    called = ast.unparse(call.func)
    for ban, instead in BANNED_CALLS.items():
        places = PRINTS if ban == "print" else CLOCKS
        if (called == ban or called.endswith(f".{ban}")) and not name.startswith(places):
            yield f"{name}:{call.lineno} {ban}: {instead}"
    executes = called.rpartition(".")[2] in {"execute", "executemany", "executescript"}
    if executes and call.args and is_built_text(call.args[0]) and not name.startswith(BUILDS_SQL):
        yield f"{name}:{call.lineno} builds SQL from text: bind parameters"


def is_built_text(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in {"format", "join"} and isinstance(node.func.value, ast.Constant)
    return isinstance(node, ast.JoinedStr | ast.BinOp)


def module_name(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        yield from own_imports(node)


def own_imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def tracked() -> list[Path]:
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=REPO, text=True)
    return [REPO / name for name in listed.split("\0") if name and (REPO / name).is_file()]
