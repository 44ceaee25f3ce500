"""Writes C: a call for each pointer that a function of include/nvm/*.h takes, with NULL in its place and something
sensible in all others, and calls with versions that no struct has. OPTIONAL names the pointers that the headers let be
NULL. A new function is called without a
word here; one whose parameters have a type or a name that is unknown here ends the build."""

import pathlib
import re
import sys

OPTIONAL = {
    "nvm_ctx_new.o",
    "nvm_free.p",
    "nvm_array_unref.a",
    "nvm_array_ref.a",
    "nvm_fn_free.f",
    "nvm_traced_free.t",
    "nvm_loop_free.l",
    "nvm_vmap_free.v",
    "nvm_vmap.in_axes",
    "nvm_vmap.out_axes",
    "nvm_vmap_open.in_axes",
    "nvm_vmap_close.out_axes",
    "nvm_generator_free.g",
    "nvm_generator_draw.parameters",
    "nvm_set.value",
    "nvm_setting.name",
    "nvm_setting.value",
    "nvm_setting.def",
    "nvm_setting.doc",
    "nvm_view.drop",
    "nvm_assign_view.drop",
    "nvm_slice.step",
    "nvm_slice_update.step",
    "nvm_tune_begin.o",
    "nvm_profile_free.p",
    "nvm_event_free.event",
    "nvm_tune_import.taken",
    "nvm_tune_clear.dropped",
    "nvm_thread_device_set.before",
    "nvm_tensordot.axes1",
    "nvm_traced_new_writing.with",
    "nvm_traced_store.lent",
    "nvm_tensordot.axes2",
    "nvm_library_dir.dir",
    "nvm_placeholder_scalar.with",
    "nvm_ctx_free.ctx",
    "nvm_synchronize.ctx",
    "nvm_compiling.seconds",
}
OPTIONAL_ANYWHERE = {"release", "owner", "user", "stream", "strides", "axes", "o", "s"}
REQUIRED = {
    "nvm_stream_get.stream",
    "nvm_stream_new.stream",
    "nvm_permute_dims.axes",
    "nvm_ctx_options_init.o",
    "nvm_tune_options_init.o",
    "nvm_profile_options_init.o",
    "nvm_scan_options_init.o",
    "nvm_loop_options_init.o",
}
# What looks at an array or a context and has no status: of NULL it tells of nothing, as the headers say.
LOOKS = {
    "nvm_dtype_of",
    "nvm_rank",
    "nvm_shape",
    "nvm_size",
    "nvm_is_pending",
    "nvm_traced_outputs",
    "nvm_device_of",
    "nvm_ctx_default_float",
    "nvm_ctx_device",
    "nvm_is_same",
    "nvm_is_packed",
    "nvm_traced_accepts",
    "nvm_traced_captured",
    "nvm_loop_results",
}
BY_NAME = {
    "version": "1",
    "axis": "0",
    "op": "1",
    "kind": "'f'",
    "rank": "2",
    "i": "0",
    "bytes": "32",
    "stage": '"graph"',
    "param": "0",
}
BY_TYPE = {
    "nvm_ctx *": "ctx",
    "nvm_scope *": "scope",
    "nvm_array *": "array",
    "nvm_array *const *": "arrays",
    "const nvm_array *": "array",
    "nvm_fn *": "fn",
    "nvm_traced *": "traced",
    "const nvm_traced *": "traced",
    "nvm_trace_fn": "trace",
    "const nvm_attr *": "&attr",
    "const nvm_index *": "indices",
    "const nvm_strided *": "&elements",
    "const int64_t *": "ones",
    "const int *": "axes",
    "const char *": '"float32"',
    "const void *": "numbers",
    "int (*)[2]": "memory",
    "const nvm_ctx_options *": "NULL",
    "const nvm_matmul_options *": "NULL",
    "const nvm_tune_options *": "NULL",
    "const nvm_profile_options *": "NULL",
    "nvm_profile *": "profile",
    "nvm_profile_format": "NVM_PROFILE_TEXT",
    "const nvm_scan_options *": "NULL",
    "const nvm_loop_options *": "&steps",
    "nvm_loop *": "loop",
    "nvm_vmap_trace *": "vmap_trace",
    "nvm_generator *": "generator",
    "const nvm_generator_state *": "&generator_state",
    "const nvm_loop *": "loop",
    "void (*)(void *)": "NULL",
    "int (*)(void *)": "NULL",
    "int": "2",
    "unsigned": "1",
    "int64_t": "1",
    "double": "1",
    "size_t": "32",
    "char": "'f'",
    "nvm_dtype": "NVM_F64",
    "nvm_device": "NVM_DEVICE_CPU",
    "nvm_order": "NVM_ORDER_AUTO",
    "nvm_norm": "NVM_NORM_BACKWARD",
    "nvm_draw": "NVM_DRAW_UNIFORM",
    "uint64_t": "1",
}


def split(parameters):
    depth, parts = 0, [""]
    for c in parameters:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [" ".join(p.split()) for p in parts]


def parameter(text):  # (type, name)
    m = re.match(r"(.*\(\*)(\w+)(\).*)", text) or re.match(r"(.*?[\s*])(\w+)$", text)
    kind = m[1] + (m[3] if len(m.groups()) > 2 else "")
    return re.sub(r"\(\*\)\((void \*)\w+\)", r"(*)(\1)", kind.strip()), m[2]


def value(kind, name):
    if name in BY_NAME and "*" not in kind:
        return BY_NAME[name]
    if kind in BY_TYPE:
        return BY_TYPE[kind]
    if kind.endswith("*") and not kind.startswith("const nvm_"):
        return "memory"  # what is filled in
    sys.exit(f"tests/api/make_null_calls.py: what is a sensible {kind} {name}?")


def functions(folder):
    for header in sorted(pathlib.Path(folder).glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        prototype = r"NVM_API\s+([\w\s*]*?)(\w+)\(((?:[^();]|\([^()]*\))*)\);"
        for result, name, parameters in re.findall(prototype, text):
            parts = [] if parameters == "void" else split(parameters)
            yield " ".join(result.split()), name, list(map(parameter, parts))


def status_of(call, result):
    return f"{call} ? NVM_OK : NVM_ERR_VALUE" if "*" in result else call


def unknown_versions(result, name, parameters):
    """(title, statement) of each version, of a struct to be filled in or of options, that the library does not have."""
    for k, (kind, at) in enumerate(parameters):
        options = re.fullmatch(r"const (nvm_\w+_options) \*", kind)
        for version in ("0", "99", "0xffffffff") if at == "version" or options else ():
            given = f"&({options[1]}){{.version = {version}}}" if options else version
            arguments = ", ".join(given if i == k else value(*p) for i, p in enumerate(parameters))
            yield f"{name}, version {version}", f"version_is_refused({status_of(f'{name}({arguments})', result)});"


def main(folder, out):
    rows = []
    for result, name, parameters in functions(folder):
        rows += unknown_versions(result, name, parameters)
        for k, (kind, at) in enumerate(parameters):
            if not ("*" in kind or kind == "nvm_trace_fn"):
                continue
            optional = at in OPTIONAL_ANYWHERE or f"{name}.{at}" in OPTIONAL or name in LOOKS
            optional = optional and f"{name}.{at}" not in REQUIRED
            arguments = ", ".join("NULL" if i == k else value(*p) for i, p in enumerate(parameters))
            how = "LOOKS" if optional else "ARRAY" if "*" in result else "STATUS" if result == "int" else "LOOKS"
            call = f"{name}({arguments})"
            body = {
                "ARRAY": f"null_is_refused({status_of(call, result)});",
                "STATUS": f"null_is_refused({call});",
                "LOOKS": f"(void)({call});" if result != "void" else f"{call};",
            }[how]
            rows.append((f"{name}, {at}", body))
    lines = ["/* Made by tests/api/make_null_calls.py. */", "static void call_with_null(int row) {", "  switch (row) {"]
    lines += [f"  case {i}: {body} return;" for i, (_, body) in enumerate(rows)]
    lines += ["  default: return;", "  }", "}", "static const char *const null_calls[] = {"]
    lines += [f'  "{title}",' for title, _ in rows] + ["};", ""]
    pathlib.Path(out).write_text("\n".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
