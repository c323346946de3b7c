"""SVG by hand: text, bars and lines on a logarithmic scale, readable on light and on dark pages."""

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

# The page decides: an image cannot ask what it is put on, but it can ask what its reader prefers.
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #24292f; }
.small { font-size: 11px; fill: #57606a; }
.head { font-weight: 600; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.grid { stroke: #d0d7de; stroke-width: 1; }
.c0 { fill: #0969da; stroke: #0969da; } .c1 { fill: #8c959f; stroke: #8c959f; }
.c2 { fill: #bf3989; stroke: #bf3989; } .c3 { fill: #1a7f37; stroke: #1a7f37; } .c4 { fill: #bc4c00; stroke: #bc4c00; }
.label { stroke: none; }
.limit { fill: none; stroke: #57606a; stroke-dasharray: 4 3; }
polyline { fill: none !important; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .small { fill: #9da7b3; } .grid { stroke: #3d444d; }
  .c0 { fill: #4493f8; stroke: #4493f8; } .c1 { fill: #6e7681; stroke: #6e7681; }
  .c2 { fill: #db61a2; stroke: #db61a2; } .c3 { fill: #3fb950; stroke: #3fb950; }
  .c4 { fill: #f0883e; stroke: #f0883e; } .label { stroke: none; } .limit { stroke: #9da7b3; }
}
"""


@dataclass(frozen=True)
class Scale:
    """Numbers between two powers of ten, on pixels between two ends."""

    low: float
    high: float
    start: float
    end: float

    def at(self, number: float) -> float:
        share = (math.log10(number) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return round(self.start + (self.end - self.start) * share, 1)

    def ticks(self) -> list[float]:
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


def scale_for(numbers: list[float], start: float, end: float) -> Scale:
    """From the power of ten below all of them to the one above."""
    low, high = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
    return Scale(10.0**low, 10.0 ** max(high, low + 1), start, end)


def page(width: int, height: int, title: str, parts: list[str]) -> str:
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    )
    head = f'{opening} role="img">\n<title>{escape(title)}</title>\n<style>{STYLE}</style>'
    return "\n".join([head, *parts, "</svg>", ""])


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(words)}</text>'


def bar(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{max(1.0, width):.1f}" height="{height}" rx="2" class="{kind}"/>'


def rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="grid"/>'


def curve(points: list[tuple[float, float]], kind: str) -> str:
    joined = " ".join(f"{x},{y}" for x, y in points)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="3" class="{kind}"/>' for x, y in points)
    return f'<polyline points="{joined}" class="{kind}"/>{dots}'


def short(number: float) -> str:
    """1,000 as 1k, and so on."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"
