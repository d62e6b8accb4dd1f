"""The graph of a pipeline for people: text, Mermaid, SVG."""

from collections.abc import Iterable
from html import escape

from lakebed.pipelines.graph import Graph, makers_of
from lakebed.pipelines.inputs import Changes, Current, Input
from lakebed.pipelines.step import Step

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _EDGE = 200, 44, 60, 24, 16
_TIP = (
    '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>'
)
Edge = tuple[str, str, bool]  # from, to, only what changed


def draw(graph: Graph, form: str) -> str:
    return {"text": to_text, "mermaid": to_mermaid, "svg": to_svg}[form](graph)


def to_text(graph: Graph) -> str:
    """One line per step, in order, with what it reads."""
    lines = []
    for step in graph.steps:
        lines.append(f"{step.table}  [{_mode(step)}]  {step.name} ({step.place})")
        lines += [f"  <- {_described(i)}" for i in step.inputs.values()]
        lines += [f"  -> {q}  (rejected rows)" for q in step.quarantines]
    return "\n".join(lines) + "\n"


def to_mermaid(graph: Graph) -> str:
    ids = {name: f"n{n}" for n, name in enumerate(_nodes(graph))}
    made = makers_of(graph.steps)
    lines = ["flowchart LR"]
    for name, node in ids.items():
        shown = name.replace('"', "#quot;")
        lines.append(f'  {node}["{shown}"]' if name in made else f'  {node}[("{shown}")]')
    for first, then, changed in _edges(graph):
        lines.append(f"  {ids[first]} {'-.->' if changed else '-->'} {ids[then]}")
    return "\n".join(lines) + "\n"


def to_svg(graph: Graph) -> str:
    """Columns by depth, left to right; dashed lines carry only what changed."""
    places = _places(graph)
    wide = _EDGE + max(x for x, _ in places.values()) + _WIDTH
    high = _EDGE + max(y for _, y in places.values()) + _HEIGHT
    made = makers_of(graph.steps)
    size = f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">',
        _TIP,
    ]
    parts += [_line(places[a], places[b], changed) for a, b, changed in _edges(graph)]
    parts += [_box(name, place, name in made) for name, place in places.items()]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _places(graph: Graph) -> dict[str, tuple[int, int]]:
    edges = list(_edges(graph))
    depth = dict.fromkeys(_nodes(graph), 0)
    for _ in depth:  # the longest path is not longer than there are nodes
        for first, then, _changed in edges:
            depth[then] = max(depth[then], depth[first] + 1)
    filled: dict[int, int] = {}
    places = {}
    for name, column in depth.items():
        row = filled.get(column, 0)
        filled[column] = row + 1
        places[name] = (
            _EDGE + column * (_WIDTH + _GAP_X),
            _EDGE + row * (_HEIGHT + _GAP_Y),
        )
    return places


def _line(start: tuple[int, int], end: tuple[int, int], changed: bool) -> str:
    x1, y1, x2, y2 = start[0] + _WIDTH, start[1] + _HEIGHT // 2, end[0], end[1] + _HEIGHT // 2
    middle = (x1 + x2) // 2
    dashed = ' stroke-dasharray="5 4"' if changed else ""
    return (
        f'<path d="M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2}" fill="none" stroke="#555"'
        f'{dashed} marker-end="url(#tip)"/>'
    )


def _box(name: str, place: tuple[int, int], made: bool) -> str:
    x, y = place
    fill = "#e8f0fe" if made else "#f4f4f4"
    return (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="{fill}"'
        f' stroke="#555"/><text x="{x + _WIDTH // 2}" y="{y + _HEIGHT // 2 + 5}"'
        f' text-anchor="middle">{escape(name)}</text>'
    )


def _nodes(graph: Graph) -> list[str]:
    found = [name for edge in _edges(graph) for name in edge[:2]]
    return list(dict.fromkeys([*found, *(s.table for s in graph.steps)]))


def _edges(graph: Graph) -> Iterable[Edge]:
    for step in graph.steps:
        for given in step.inputs.values():
            yield _node(given), step.table, isinstance(given, Changes)
        for quarantine in step.quarantines:
            yield step.table, quarantine, True


def _node(given: Input) -> str:
    return given.table if isinstance(given, Current | Changes) else given.key.partition(":")[2]


def _described(given: Input) -> str:
    kind, _, name = given.key.partition(":")
    return f"{name}  ({kind})"


def _mode(step: Step) -> str:
    return (
        f"{step.output.mode} by {', '.join(step.output.key)}"
        if step.output.key
        else step.output.mode
    )
