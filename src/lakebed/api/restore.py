"""A table as a whole becomes what it was, or what a branch of it is. No data is written."""

from lakebed.api.parts import Parts
from lakebed.api.points import Point
from lakebed.api.staging import Staged
from lakebed.core.state import restored
from lakebed.model.changes import FastForward, Restore
from lakebed.model.errors import InvalidInput, UnsupportedFeature
from lakebed.model.history import BRANCH, CommitRecord
from lakebed.model.ids import MAIN_LINE, Line
from lakebed.model.schema import files_fit


def restore(parts: Parts, staged: Staged, point: Point) -> None:
    """Stage it, unless the table is at that version."""
    commit = _find(parts, staged, point)
    if commit.version == staged.head.version:
        return
    then, live, _ = parts.planner.look(staged.head, commit.version)
    moves = staged.head.line == MAIN_LINE
    if moves and not files_fit(staged.state.schema, then.schema):
        _refuse_branches(parts, staged)
    state = restored(staged.state, then) if moves else staged.state
    staged.move(Restore(commit.version), "restore", state, live)


def _refuse_branches(parts: Parts, staged: Staged) -> None:
    """They show their rows in the columns of the table, whatever they were written in."""
    branches = [r.name for r in parts.refs.list(staged.head) if r.kind == BRANCH]
    if branches[1:]:  # besides main
        raise UnsupportedFeature(
            f"branch {branches[1]} may hold rows that do not fit the columns of then",
            hint="drop the branch first, or restore a later version",
        )


def _find(parts: Parts, staged: Staged, point: Point) -> CommitRecord:
    if point == Point():
        raise InvalidInput(
            "restore needs a version, a timestamp or a ref", hint="restore(version=3)"
        )
    if point.ref is None:
        return point.commit(parts, staged.head)
    main = parts.catalog.get(staged.head.id, str(staged.head.name))
    commit = point.commit(parts, point.head(parts, main))
    if commit.line != staged.head.line:
        raise UnsupportedFeature(
            f"{point.ref} names a version of another branch",
            hint='restore goes back on one line; main takes a branch by fast_forward("main", to=…)',
        )
    return commit


def forward(parts: Parts, staged: Staged, line: Line) -> None:
    """Main becomes what the line is; whether it may is decided when it is committed."""
    now = parts.planner.look(staged.head, staged.head.version)
    staged.move(FastForward(line), "fast-forward", staged.state, now.live)
