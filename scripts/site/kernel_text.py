"""The tables of docs/how-it-works/kernel-text.md, made from lib/kernel/statements.def and hints.def: what stands between
`<!-- table: NAME -->` and `<!-- end of table -->`.

scripts/site/kernel_text.py            writes them
scripts/site/kernel_text.py --check    fails where it would change something
"""

import pathlib
import re
import sys

from reference import rows, strings

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/how-it-works/kernel-text.md"


def table(head, lines):
    return ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *lines]]


def statements():
    text = (ROOT / "lib/kernel/statements.def").read_text()
    found = [a for name in ("OPERATION", "CONTROL") for kind, a in rows(text, name) if kind == "row"]
    return table(
        ["statement", "meaning", "what must hold"], [[f"`{strings(a[5])}`", *map(strings, a[6:])] for a in found]
    )


def statements_of(of):
    """The statements that may have a hint: ON(LOAD) | ON(STORE), ANY, FIRST."""
    whole = {"ANY": "any", "FIRST": "the kernel, at statement 0"}
    return whole.get(of) or ", ".join(re.findall(r"ON\((\w+)\)", of)).lower()


def values_of(values):
    """What K may be: FLAG, RANGE(1, 2), FROM(1), POWERS(1, 16)."""
    kind, *bounds = re.findall(r"\w+", values)
    least, most = (int(b) for b in (*bounds, *bounds)[:2]) if bounds else (1, 1)
    if kind == "POWERS":
        return ", ".join(str(1 << i) for i in range(least.bit_length() - 1, most.bit_length()))
    return f"{least} or more" if kind == "FROM" else str(least) if least == most else f"{least}, {most}"


def hints():
    found = [a for kind, a in rows((ROOT / "lib/kernel/hints.def").read_text(), "HINT") if kind == "row"]
    lines = []
    for _, word, of, targets, bits, values, meaning in found:
        says = strings(meaning) + ("; results may have other bits" if bits == "OTHER" else "")
        lines.append([f"`{word} = K`", values_of(values), statements_of(of), targets.replace(" | ", ", "), says])
    return table(["hint", "K", "of", "back ends", "meaning"], lines)


TABLES = {"statements": statements, "hints": hints}


def main():
    old = PAGE.read_text()
    between = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.S)
    new = between.sub(lambda m: m[1] + "\n" + "\n".join(TABLES[m[2]]()) + "\n\n" + m[3], old)
    if sys.argv[1:] == ["--check"]:
        sys.exit(f"scripts/docs figures would change {PAGE.relative_to(ROOT)}" if new != old else 0)
    PAGE.write_text(new)


if __name__ == "__main__":
    main()
