"""The picture of the README: an expression, and beside it the plan that nvm.explain says of it on this machine.

python scripts/site/plan_picture.py        writes docs/images/plan.svg (scripts/docs figures does)
"""

import html
import pathlib
import re
import textwrap

import nvm

CODE = '''\
def f(x, w, b):
    h = nvm.gelu(x @ w + b)
    h = h - h.mean(axis=1, keepdims=True)
    return nvm.softmax(h, axis=1)'''
SHAPES = {"x": (4096, 1024), "w": (1024, 1024), "b": (1024,)}
TARGET = pathlib.Path(__file__).resolve().parents[2] / "docs" / "images" / "plan.svg"
LEFT, BOX, WIDTH, LINE = 352, 470, 1010, 17


def explained():
    names = {"nvm": nvm}
    exec(CODE, names)
    return nvm.explain(nvm.jit(names["f"]), *(nvm.zeros(s, dtype="float32") for s in SHAPES.values()))


def kernels(text):
    """(number, kind, operations, read, written, lines below it) of each kernel of an explanation."""
    out = []
    for line in text.splitlines()[1:]:
        if m := re.match(r"  (\d+)\. ([\w-]+): (.*); reads (.*?), writes (.*?);", line):
            out.append([int(m[1]), m[2], m[3], m[4], m[5], []])
        elif m := re.match(r"  (\d+) runs by (.*)", line):
            out[int(m[1]) - 1][5].append("runs by " + m[2])
        elif out and line.startswith("     "):
            out[-1][5].append(line.strip())
    return out


def svg(text):
    def words(x, y, s, extra=""):
        return f'<text x="{x}" y="{y}" {extra}>{html.escape(s)}</text>'

    out, y = [], 44
    mono = 'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12.5" xml:space="preserve"'
    for line in CODE.splitlines():
        out.append(words(24, y, line, mono))
        y += 20
    y += 14
    for name, shape in SHAPES.items():
        out.append(words(24, y, f"{name}: float32, {' x '.join(map(str, shape))}", 'fill="#555"'))
        y += LINE
    left_end, y = y, 24
    found = kernels(text)
    for i, kind, what, read, written, more in found:
        lines = textwrap.wrap(what, 62) + more
        height = 34 + LINE * len(lines)
        out.append(f'<rect x="{LEFT}" y="{y}" width="{BOX}" height="{height}" rx="8" fill="#eef3fa" stroke="#2a5db0"/>')
        out.append(words(LEFT + 14, y + 22, f"kernel {i}: {kind}", 'font-weight="bold" fill="#1d3f78"'))
        out += [
            words(LEFT + 14, y + 42 + LINE * k, s, 'fill="#555"' if k >= len(lines) - len(more) else "")
            for k, s in enumerate(lines)
        ]
        for dy, s in ((22, f"reads {read}"), (22 + LINE, f"writes {written}")):
            out.append(words(LEFT + BOX + 16, y + dy, s, 'fill="#0b6e4f"'))
        y += height
        if i < len(found):
            out.append(
                f'<path d="M{LEFT + BOX / 2} {y}v20m-5 -7l5 7l5 -7" fill="none" stroke="#2a5db0" stroke-width="1.5"/>'
            )
            y += 22
    y += 26
    told = [text.splitlines()[0]] + [line.strip() for line in text.splitlines() if line.startswith("  not fused")]
    for s in told:
        for part in textwrap.wrap(s, 92):
            out.append(words(LEFT, y, part, 'fill="#555"'))
            y += LINE
    height = max(y, left_end) + 6
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="system-ui, sans-serif" font-size="13">'
        f"<title>An expression and its plan</title>"
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="10" fill="white" stroke="#ccc"/>\n'
        + "\n".join(out)
        + "\n</svg>\n"
    )


if __name__ == "__main__":
    plan = explained()
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(svg(plan))
    print(plan)
