"""The picture of the README: an expression, and beside it the plan that nvm.explain says of it on this machine.

python scripts/site/plan_picture.py        writes docs/images/plan.svg (scripts/docs figures does)
"""

import pathlib

import nvm
from nvm._plan import draw_plan, frame, write_words

CODE = '''\
def f(x, w, b):
    h = nvm.gelu(x @ w + b)
    h = h - h.mean(axis=1, keepdims=True)
    return nvm.softmax(h, axis=1)'''
SHAPES = {"x": (4096, 1024), "w": (1024, 1024), "b": (1024,)}
TARGET = pathlib.Path(__file__).resolve().parents[2] / "docs" / "images" / "plan.svg"
LEFT, WIDTH = 352, 1010


def explained():
    names = {"nvm": nvm}
    exec(CODE, names)
    return nvm.explain(nvm.jit(names["f"]), *(nvm.zeros(s, dtype="float32") for s in SHAPES.values()))


def svg(text):
    out, y = [], 44
    mono = 'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12.5" xml:space="preserve"'
    for line in CODE.splitlines():
        out.append(write_words(24, y, line, mono))
        y += 20
    y += 14
    for name, shape in SHAPES.items():
        out.append(write_words(24, y, f"{name}: float32, {' x '.join(map(str, shape))}", 'fill="#555"'))
        y += 17
    plan, end = draw_plan(text, LEFT, 24)
    return frame(out + plan, WIDTH, max(y, end) + 6, "An expression and its plan")


if __name__ == "__main__":
    plan = explained()
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(svg(plan))
    print(plan)
