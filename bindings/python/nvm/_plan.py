"""Plans to look at: the text that nvm.explain returns, as a string that draws itself."""

import re
import textwrap

from ._print import escape_html

_BOX, _LINE, _GAP = 470, 17, 22  # pixels: the width of a kernel's box, a line, the arrow between two boxes


def write_words(x, y, text, attributes=""):
    """An SVG text element at (x, y)."""
    return f'<text x="{x}" y="{y}" {attributes}>{escape_html(text)}</text>'


def find_kernels(text):
    """The kernels of an explanation, in order: dicts of number, kind, operations, reads, writes, time (of the cost
    model), notes (a list of lines)."""
    out = []
    for line in text.splitlines():
        if m := re.match(r"  (\d+)\. ([\w-]+): (.*); reads (.*?), writes (.*?); about (.*?), \d", line):
            names = ("number", "kind", "operations", "reads", "writes", "time")
            out.append(dict(zip(names, (int(m[1]), *m.groups()[1:])), notes=[]))
        elif out and (m := re.match(r"  (\d+) runs by (.*)", line)):
            same = [k for k in out if k["number"] == int(m[1])]
            same[-1]["notes"].append("runs by " + m[2])
        elif out and line.startswith("     "):
            out[-1]["notes"].append(line.strip())
    return out


def _draw_kernel(k, left, y):
    """The elements of one box, and its height."""
    what = textwrap.wrap(k["operations"], 62)
    lines = what + [part for note in k["notes"] for part in textwrap.wrap(note, 62)]
    height = max(34 + _LINE * len(lines), 34 + 2 * _LINE)
    out = [f'<rect x="{left}" y="{y}" width="{_BOX}" height="{height}" rx="8" fill="#eef3fa" stroke="#2a5db0"/>']
    title = f"kernel {k['number']}: {k['kind']}"
    out.append(write_words(left + 14, y + 22, title, 'font-weight="bold" fill="#1d3f78"'))
    for i, line in enumerate(lines):
        out.append(write_words(left + 14, y + 42 + _LINE * i, line, 'fill="#555"' if i >= len(what) else ""))
    beside = (f"reads {k['reads']}", f"writes {k['writes']}", f"about {k['time']}")
    for i, line in enumerate(beside):
        out.append(write_words(left + _BOX + 16, y + 22 + _LINE * i, line, 'fill="#0b6e4f"'))
    return out, height


def draw_plan(text, left, y):
    """The elements of a picture of an explanation, whose boxes begin at (left, y), and where it ends below."""
    out, found = [], find_kernels(text)
    for i, k in enumerate(found):
        box, height = _draw_kernel(k, left, y)
        out += box
        y += height
        if i + 1 < len(found):
            middle = left + _BOX / 2
            out.append(f'<path d="M{middle} {y}v20m-5 -7l5 7l5 -7" fill="none" stroke="#2a5db0" stroke-width="1.5"/>')
            y += _GAP
    y += 26
    said = [line.strip() for line in text.splitlines() if not line.startswith("  ") or "not fused" in line]
    for line in said:
        for part in textwrap.wrap(line, 92):
            out.append(write_words(left, y, part, 'fill="#555"'))
            y += _LINE
    return out, y


def frame(elements, width, height, title):
    """An SVG document of these elements."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" font-size="13">'
        f"<title>{escape_html(title)}</title>"
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10" fill="white" stroke="#ccc"/>\n'
        + "\n".join(elements)
        + "\n</svg>\n"
    )


class Plan(str):
    """What nvm.explain returns: a text, which a notebook shows as a picture. Each kernel is a box, with its operations
    inside and the bytes that it reads and writes and its time by the cost model beside it."""

    __slots__ = ()

    def __repr__(self):
        return str(self)

    def kernels(self):
        """The kernels in order: a list of dicts of number, kind, operations, reads, writes, time, notes."""
        return find_kernels(self)

    def svg(self):
        """The picture as an SVG document: a str."""
        elements, end = draw_plan(self, 24, 24)
        return frame(elements, 24 + _BOX + 160, end + 6, "the plan of nvm")

    def html(self):
        """The picture and the text as an HTML element: a str."""
        return (
            f'<div style="max-width: 46em">{self.svg()}'
            f"<details><summary>as text</summary><pre>{escape_html(self)}</pre></details></div>"
        )

    def _repr_html_(self):
        return self.html()
