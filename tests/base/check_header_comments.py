"""Fails where a public header does not say what a caller must know: what a function does, who owns what it returns, in
which unit strides are, which shapes and dtypes arrays have, which version is accepted, and what an int that it returns
means.

    check_header_comments.py SOURCE      looks at include/nvm/*.h

A function's text is the comment on its line or before it, that of the functions just above it in the same run of
declarations, and the line that begins its section."""

import re
import sys
from pathlib import Path

OWNERSHIP = r"\b(own(s|ed|er)?|belongs?|borrow(s|ed)?|scope|free[sd]?|reference|static storage|valid)\b"
MEANING = r"\b(status|NVM_ERR_\w+|NVM_OK|1:|number|bytes|returns?)\b|\b1:"
SHAPE = (
    r"\b(shapes?|ranks?|dimensions?|axis|axes|broadcast|extents?|elements?|matri(x|ces)|rows?|columns?|scalar|size)\b"
)
DTYPE = r"\b(dtypes?|bool|integers?|(un)?signed|real|floats?|complex|numbers?|f32|bits|casts?|(u?int|float)\d+)\b"


def computes(result, parameters):
    """Whether it takes or returns arrays for their elements."""
    return result == "nvm_array *" or re.search(r"nvm_array \*\*?\w", parameters)


RULES = [  # what is asked of (result, parameters), what its text must hold, and what is missing otherwise
    (lambda r, p: True, r"\w", "has no comment"),
    (
        lambda r, p: r.endswith("*") or re.search(r"(nvm_\w+|char) \*\*\w", p),
        OWNERSHIP,
        "does not say who owns the result",
    ),
    (lambda r, p: computes(r, p), SHAPE, "does not say which shapes it takes or returns"),
    (lambda r, p: computes(r, p), DTYPE, "does not say which dtypes it takes or returns"),
    (lambda r, p: "strides" in p, r"\bbytes\b", "does not say in which unit strides are"),
    (lambda r, p: "unsigned version" in p, r"NVM_ERR_VALUE", "does not say what another version is"),
    (lambda r, p: r == "int", MEANING, "does not say what it returns"),
]
PROTOTYPE = re.compile(r"NVM_API\s+((?:const )?\w+ \**)\s*(nvm_\w+)\((.*)\);\s*(/\*.*)?", re.S)


def functions(text):
    """Yields (line, result, name, parameters, its text) of each prototype."""
    head = text[: text.index("*/")] if text.startswith("/* Operations") else ""  # what it says of every operation
    section, run, before = "", "", ""
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        at, line = i, lines[i]
        if line.startswith("/*"):
            while "*/" not in lines[i]:
                i += 1
            comment = " ".join(lines[at : i + 1])
            if line.startswith("/* ----"):
                section, comment = comment, ""
            before = comment
            run = ""
        elif line.startswith("NVM_API"):
            while ");" not in lines[i]:
                i += 1
            match = PROTOTYPE.match(" ".join(s.strip() for s in lines[at : i + 1]))
            run = " ".join([run, before, match[4] or ""])
            before = ""
            yield at + 1, match[1].strip(), match[2], match[3], section + run, " ".join([head, section, run])
        elif not line.strip():
            section, run, before = "", "", ""
        i += 1


def main(source):
    bad = count = 0
    for path in sorted(Path(source, "include/nvm").glob("*.h")):
        for line, result, name, parameters, own, text in functions(path.read_text()):
            count += 1
            for applies, must, missing in RULES:
                if applies(result, parameters) and not re.search(must, text if own else ""):
                    print(f"{path.name}:{line}: {name} {missing}")
                    bad += 1
    if count < 200:
        print(f"only {count} prototypes could be read")
        bad += 1
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
