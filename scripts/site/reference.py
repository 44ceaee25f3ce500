"""The pages of docs/reference, made from what the library itself is made from: lib/graph/ops.def and rules.def, the
public headers, lib/base/settings.def, the package's stubs and docstrings. No operation is named here."""

import inspect
import pathlib
import re
import textwrap

HEADERS = (
    "nvm.h",
    "types.h",
    "status.h",
    "device.h",
    "profile.h",
    "tune.h",
)  # ops.h stands beside Python in operations.md

# What comments say of other documents, as links.
PAGES = {
    "numerics": "../how-it-works/numerics.md",
    "tuning": "../guide/tuning.md",
    "profiling": "../guide/profiling.md",
    "views": "../guide/views.md",
}


# ---- tables of the library: NAME(argument, ...) with strings, words and nested parentheses


def strings(text):
    """The value of adjacent C literals."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace('\\"', '"')


def arguments(text, start):
    """The arguments of the call whose parenthesis opens at `start`, and where it ends."""
    out, depth, begin, i = [], 0, start + 1, start
    while True:
        c = text[i]
        if c == '"':
            i = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, i).end() - 1
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        if c == "," and depth == 1 or depth == 0:
            out.append(text[begin:i].strip())
            begin = i + 1
        i += 1
        if depth == 0:
            return out, i


def rows(text, name):
    """Comments and rows of a table in order: ('comment', text) and ('row', arguments)."""
    at = 0
    for m in iter(lambda: re.compile(rf"/\*(.*?)\*/|^{name}(\()", re.S | re.M).search(text, at), None):
        if m[2]:
            args, at = arguments(text, m.start(2))
            yield "row", args
        else:
            at = m.end()
            yield "comment", flowed(m[1])


# ---- headers


def flowed(comment):
    return " ".join(comment.split())


def declarations(text):
    """What a header says, in order: ('section', title, text), then (declaration, comment) pairs as ('c', ...)."""
    text = re.sub(r"^\s*#.*$", "", text, flags=re.M)
    text = re.sub(r'extern "C" \{|^\}\s*$', "", text, flags=re.M)
    at, before = 0, []
    token = re.compile(r"\s*(?:/\*(.*?)\*/|((?:[^;{/]|\{.*?\n?\})+?;))([ \t]*/\*(?:.*?)\*/)?", re.S)
    while m := token.match(text, at):
        if m[1] is not None:
            comment, at = flowed(m[1]), m.end(1) + 2
            if comment.startswith("---- "):
                title, _, rest = comment[5:].partition(". ")
                title, _, more = title.partition(";")
                yield "section", title.rstrip("."), (more.strip() + ". " if more else "") + rest
                before = []
            else:
                before.append(comment)
        else:
            tail = flowed(m[3].strip()[2:-2]) if m[3] else ""
            at = m.end()
            source = textwrap.dedent(re.sub(r"\bNVM_API ", "", m[2])).strip()
            yield "c", source, " ".join(before + ([tail] if tail else []))
            before = []


def name_of(source):
    m = re.search(r"\b(nvm_\w+)\s*\(", source) or re.search(r"(\w+)\s*;$", source)
    return m[1] if m else source


def sentence(text):
    """`text` in Markdown: a capital first, a full stop last."""
    text = text.strip()
    if not text:
        return ""
    text = text.replace("<", "&lt;").replace("*", r"\*")
    for page, to in PAGES.items():
        text = re.sub(rf"\b(docs/)?{page}\.md", f"[{page}]({to})", text)
    if re.match(r"(?!nvm\b)[a-z]+\b(?![_(\[.])", text):
        text = text[0].upper() + text[1:]
    return text if text[-1] in ".:" else text + "."


# ---- pages


def stubs():
    """The typed signatures of the package by name, and the lines of its class Array."""
    import nvm

    text = (pathlib.Path(nvm.__file__).parent / "__init__.pyi").read_text()
    functions = dict(re.findall(r"^def (\w+)(\(.*\) -> .*): \.\.\.$", text, re.M))
    methods = re.search(r"^class Array:\n((?:    .*\n|\n)+)", text, re.M)[1]
    return functions, methods


def block(language, text):
    return f"```{language}\n{text}\n```\n"


def code_of_c(source):
    """One declaration in some 45 columns, for half a page."""
    if len(source) <= 44 or "{" in source:
        return source
    head, _, rest = " ".join(source.split()).partition("(")
    return head + "(\n    " + textwrap.fill(rest, 44).replace("\n", "\n    ")


def operations(root, functions):
    rules = {
        a[0]: strings(a[4]) for kind, a in rows((root / "lib/graph/rules.def").read_text(), "RULE") if kind == "row"
    }
    prototypes = {
        name_of(d[1]): d
        for d in declarations((root / "include/nvm/ops.h").read_text())
        if d[0] == "c" and "typedef" not in d[1]
    }
    told = set()
    found = list(rows((root / "lib/graph/ops.def").read_text(), "OP"))
    public = {strings(a[3]): a[2] for kind, a in found if kind == "row" and not strings(a[3]).startswith("_")}
    own = {f"nvm_{n}" for names in public.items() for n in names}
    variants = {}  # such as nvm_matmul_opt, of matmul
    for p in prototypes:
        bases = [n for n in public if p.startswith(f"nvm_{n}_")]
        if bases and p not in own:
            variants.setdefault(max(bases, key=len), []).append(p)
    out = [
        "# Operations\n\nEach operation once: Python and C, the dtypes it takes, what it means. Made from "
        "`lib/graph/ops.def` and `include/nvm/ops.h`.\n"
    ]
    intro = re.match(r"/\*(.*?)\*/", (root / "include/nvm/ops.h").read_text(), re.S)[1]
    out.append("\n".join(sentence(flowed(p)) + "\n" for p in re.split(r"\n\s*\n", intro)))
    for kind, a in found:
        if kind == "comment":
            if a.startswith("---- ") and "nodes that" not in a:
                out.append(f"## {a[5:6].upper()}{a[6:].split('.')[0]}\n")
            continue
        name = strings(a[3])
        if name.startswith("_"):
            continue
        protos = [p for p in dict.fromkeys([f"nvm_{a[2]}", f"nvm_{name}"] + variants.get(name, [])) if p in prototypes]
        told.update(protos)
        out.append(f"### {name}\n\n{sentence(strings(a[8]))}\n")
        if a[5] != "NONE":
            out.append(f"**dtypes**: {rules[a[5]]}.\n")
        sides = (
            [block("python", textwrap.fill(f"nvm.{name}" + functions[name], 46, subsequent_indent="    "))]
            if name in functions
            else []
        )
        if protos:
            sides.append(block("c", "\n".join(code_of_c(prototypes[p][1]) for p in protos)))
        out.append('<div class="sides" markdown>\n\n' + "\n".join(sides) + "\n</div>\n")
        notes = [prototypes[p][2] for p in protos if prototypes[p][2] and prototypes[p][2] != strings(a[8])]
        out += [f"In C: {n}\n" if n.startswith("NULL") else sentence(n) + "\n" for n in notes]
    rest = [p for p in prototypes if p not in told]
    if rest:
        out.append("## In C alone\n")
        for p in rest:
            out.append(f"### {p}\n\n" + block("c", prototypes[p][1]) + "\n" + sentence(prototypes[p][2]) + "\n")
    return "\n".join(out)


def c_api(root):
    out = [
        "# C API\n\nThe headers in words; the operations themselves stand [beside those of Python](operations.md).\n"
    ]
    for h in HEADERS:
        text = (root / "include/nvm" / h).read_text()
        intro = re.match(r"/\*(.*?)\*/", text, re.S)
        out.append(f"## nvm/{h}\n\n" + "\n".join(sentence(flowed(p)) + "\n" for p in re.split(r"\n\s*\n", intro[1])))
        for d in declarations(text[intro.end() :]):
            if d[0] == "section":
                out.append(f"### {d[1][0].upper()}{d[1][1:]}\n\n{sentence(d[2])}\n")
            else:
                out.append(block("c", d[1]) + (f"\n{sentence(d[2])}\n" if d[2] else ""))
    return "\n".join(out)


def python_api(functions, methods):
    import nvm

    table = nvm._nvm.op_table()
    groups = {}
    for name in nvm.__all__:
        value = getattr(nvm, name)
        if name in table or isinstance(value, (nvm.DType, float, str, type(None))) or inspect.ismodule(value):
            continue
        module = getattr(value, "__module__", None)
        module = module.rpartition(".")[2].strip("_") if isinstance(module, str) else "nvm"
        groups.setdefault(module, []).append((name, value))
    out = [
        "# Python API\n\nWhat is no [operation](operations.md): functions, classes, the methods of an array. Made "
        "from the package's stubs and docstrings.\n"
    ]
    for group, found in sorted(groups.items()):
        out.append(f"## {'Library' if group == 'nvm' else group.replace('_', ' ').capitalize()}\n")
        for name, value in found:
            out.append(f"### {name}\n")
            if name in functions:
                out.append(
                    block("python", textwrap.fill(f"nvm.{name}" + functions[name], 100, subsequent_indent="    "))
                )
            if doc := inspect.getdoc(value):
                out.append(sentence(doc.replace("_", r"\_")) + "\n")
    dtypes = [n for n in nvm.__all__ if isinstance(getattr(nvm, n), nvm.DType)]
    out.append("## dtypes\n\n" + ", ".join(f"`nvm.{n}`" for n in dtypes) + ".\n")
    out.append(
        "## Methods of an array\n\n"
        + block(
            "python", "\n".join(line for line in textwrap.dedent(methods).splitlines() if not line.startswith("def __"))
        )
    )
    return "\n".join(out)


def settings(root):
    out = [
        "# Settings\n\nEach row is an environment variable, `nvm.set(name, value)` in Python and `nvm_set` in C "
        "(without the prefix, in any case), and a line of `python -m nvm settings`.\n",
        "| variable | default | takes | what it does |",
        "| --- | --- | --- | --- |",
    ]
    for kind, a in rows((root / "lib/base/settings.def").read_text(), "SETTING"):
        if kind == "row":
            takes = strings(a[4]).replace(",", ", ") or {"INT": "a count", "SIZE": "bytes, K, M, G, T"}.get(
                a[1], "a text"
            )
            doc = re.sub(r"docs/[\w/-]+\.md", lambda m: f"`{m[0]}`", strings(a[6])).replace("|", "\\|")
            out.append(f"| `{strings(a[2])}` | `{strings(a[3]) or ' '}` | {takes} | {doc} |")
    return "\n".join(out) + "\n"


def pages(root):
    """{path below docs/: Markdown}"""
    functions, methods = stubs()
    return {
        "reference/operations.md": operations(root, functions),
        "reference/c.md": c_api(root),
        "reference/python.md": python_api(functions, methods),
        "reference/settings.md": settings(root),
        "reference/index.md": "# Reference\n\n- [Operations](operations.md): Python and C side by side\n"
        "- [Python API](python.md): functions, classes, methods\n- [C API](c.md): contexts, scopes, values, "
        "functions, devices, tuning\n- [Settings](settings.md): environment variables\n",
    }


if __name__ == "__main__":
    for path, text in pages(pathlib.Path(__file__).resolve().parents[2]).items():
        print(f"==== {path}\n{text}")
