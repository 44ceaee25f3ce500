"""The tables of docs/guide/numpy.md: which of the names of NumPy's `__all__` nvm.numpy has. It stands between
`<!-- table: NAME -->` and `<!-- end of table -->`.

scripts/site/numpy_names.py            writes them
scripts/site/numpy_names.py --check    fails where it would change something, if NumPy is of the page's version
"""

import pathlib
import re
import sys

import numpy

import nvm.numpy

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/guide/numpy.md"
VERSION = ".".join(numpy.__version__.split(".")[:2])
WHY = {  # what the missing names are for
    "dates and times": "busday_count busday_offset datetime_as_string datetime_data is_busday isnat",
    "matrices, a class that NumPy discourages": "asmatrix bmat",
    "objects and structured arrays": "frompyfunc fromregex",
    "buffers and iterators of NumPy's C code": "getbufsize nested_iters setbufsize",
    "traps of floating-point errors": "geterrcall seterrcall",
    "NumPy's own installation": "get_include info show_config show_runtime test",
    "texts of single numbers": "format_float_positional format_float_scientific",
}


def kind_of(name):
    x = getattr(numpy, name)
    if isinstance(x, numpy.ufunc):
        return "ufuncs"
    if isinstance(x, type):
        return "types"
    return "functions" if callable(x) else "constants and modules"


def has(name):
    return hasattr(nvm.numpy, name)


def shares():
    """Rows (kind, number of names, number of those that are here)."""
    kinds = {}
    for name in numpy.__all__:
        kinds.setdefault(kind_of(name), []).append(name)
    order = "functions", "ufuncs", "types", "constants and modules"
    return [(kind, len(kinds[kind]), sum(map(has, kinds[kind]))) for kind in order]


def coverage():
    rows = shares()
    called = [sum(column) for column in list(zip(*rows[:2]))[1:]]
    rows.append(("functions and ufuncs together", *called))
    lines = [f"| NumPy {VERSION}: names of `numpy.__all__` | number | here | share |", "| --- | --- | --- | --- |"]
    return lines + [f"| {kind} | {n} | {here} | {100 * here / n:.1f} % |" for kind, n, here in rows]


def missing():
    names = {n for n in numpy.__all__ if kind_of(n) in ("functions", "ufuncs") and not has(n)}
    lines = ["| missing functions | what they are for |", "| --- | --- |"]
    for why, words in WHY.items():
        here = sorted(names.intersection(words.split()))
        names.difference_update(here)
        if here:
            lines.append(f"| {', '.join(f'`{n}`' for n in here)} | {why} |")
    if names:
        raise SystemExit(f"numpy_names.py does not say why these are missing: {', '.join(sorted(names))}")
    return lines


TABLES = {"coverage": coverage, "missing": missing}


def main():
    old = PAGE.read_text()
    if "--check" in sys.argv and f"| NumPy {VERSION}:" not in old:
        print(f"the page is of another NumPy than {VERSION}")
        return 0
    between = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.S)
    new = between.sub(lambda m: m[1] + "\n" + "\n".join(TABLES[m[2]]()) + "\n\n" + m[3], old)
    print("\n".join(coverage()))
    if "--check" not in sys.argv:
        PAGE.write_text(new)
    elif new != old:
        print(f"{PAGE.name} is not what scripts/site/numpy_names.py makes", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
