"""Bars for people: as text in a terminal, and as an SVG file for a browser."""

from collections.abc import Mapping
from xml.sax.saxutils import escape

WIDTH, ROW, LABEL, FIGURE = 760, 22, 210, 80
CELLS = 40


def text_bars(values: Mapping[str, float], form: str = ",.2f") -> list[str]:
    """One line each; the longest bar has 40 cells, negative values have none."""
    most = max((abs(v) for v in values.values()), default=0) or 1
    return [
        f"{name:<28} {value:>12{form}} {'█' * round(CELLS * max(0, value) / most)}"
        for name, value in values.items()
    ]


def svg_bars(title: str, values: Mapping[str, float], form: str = ",.2f") -> str:
    """The same as a picture, which needs nothing but a browser."""
    most = max((abs(v) for v in values.values()), default=0) or 1
    height = ROW * (len(values) + 2)
    size = f'width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">',
        f'<text x="8" y="{ROW - 6}" font-weight="bold">{escape(title)}</text>',
    ]
    for n, (name, value) in enumerate(values.items(), 1):
        y, long = ROW * n + 4, (WIDTH - LABEL - FIGURE) * max(0, value) / most
        parts += [
            f'<text x="{LABEL - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{LABEL}" y="{y}" width="{long:.1f}" height="{ROW - 6}" fill="#3b6ea5"/>',
            f'<text x="{LABEL + long + 6:.1f}" y="{y + 13}">{value:{form}}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])
