"""Speed-up over the number of disks as a picture: SVG for documents, bars for terminals."""

import html
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 440, 60, 150, 40, 50
COLOURS = ["#1b6ca8", "#c0392b", "#2d8a4e", "#8e44ad", "#b9770e", "#566573"]
GOAL_COLOUR = "#999999"
BAR_COLUMNS = 60


class Plane:
    """Both axes double from mark to mark, so that what scales is a straight line."""

    def __init__(self, largest):
        self.marks = [2**i for i in range(math.ceil(math.log2(max(2, largest))) + 1)]

    def x(self, value):
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log2(value) / math.log2(self.marks[-1])

    def y(self, value):
        share = math.log2(max(0.5, value)) / math.log2(self.marks[-1])
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    def axes(self):
        left, right, top, bottom = LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM
        for mark in self.marks:
            x, y = self.x(mark), self.y(mark)
            yield f'<path d="M{x:.1f} {top} V{bottom} M{left} {y:.1f} H{right}" stroke="#eeeeee"/>'
            yield text(x, bottom + 18, mark, "middle")
            yield text(left - 8, y + 4, mark, "end")
        yield text((left + right) / 2, HEIGHT - 10, "disks", "middle")

    def line(self, points, colour, name, extra=""):
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" {extra}/>'
        yield text(self.x(points[-1][0]) + 8, self.y(points[-1][1]) + 4, name, "start", colour)

    def dots(self, points, colour):
        for x, y in points:
            yield f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3.5" fill="{colour}"/>'


def text(x, y, words, anchor, colour="#333333"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{html.escape(str(words))}</text>'


def svg(title, series, goal):
    """`series`: {name: [(disks, speed-up), ...]}; `goal`: speed-up asked for each disk."""
    largest = max(disks for points in series.values() for disks, _ in points)
    plane = Plane(max(largest, *(y for points in series.values() for _, y in points)))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif"',
        f' font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(LEFT, TOP - 16, title, "start"),
        *plane.axes(),
        *plane.line([(1, goal), (largest, goal * largest)], GOAL_COLOUR, f"{goal:g} p", 'stroke-dasharray="5 4"'),
    ]
    for (name, points), colour in zip(series.items(), COLOURS * len(series)):
        parts += [*plane.line(points, colour, name), *plane.dots(points, colour)]
    return "\n".join(parts + ["</svg>", ""])


def bars(series, goal):
    """A line for each point; the stroke is where the goal is."""
    largest = max(max(y, goal * x) for points in series.values() for x, y in points)
    for name, points in series.items():
        for x, y in points:
            columns = [" "] * (BAR_COLUMNS + 1)
            columns[: round(y / largest * BAR_COLUMNS)] = "#" * round(y / largest * BAR_COLUMNS)
            columns[round(goal * x / largest * BAR_COLUMNS)] = "|"
            yield f"{name:>10} {x:>3}  {''.join(columns).rstrip()}"
