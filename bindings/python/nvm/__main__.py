"""python -m nvm info | settings | ops: what this installation is, what can be set, what it can compute.
python -m nvm run SCRIPT [ARGUMENTS]: a program whose `import numpy` is answered by nvm.numpy.
python -m nvm tune list | export | import | clear | run: tuning records."""

import sys

import nvm
from nvm import _nvm


def info():
    print(nvm.info(), end="")
    changed = {n: r for n, r in _nvm.settings_table().items() if r[0] != r[1]}
    for name, (value, default, _) in changed.items():
        print(f"{name} = {value} (default {default or 'empty'})")


def settings():
    for name, (value, default, doc) in _nvm.settings_table().items():
        print(f"{name} = {value or '(empty)'}   [default {default or '(empty)'}]\n    {doc}")


def ops():
    for name, (kind, _, signature, doc) in _nvm.op_table().items():
        if not name.startswith("_"):
            print(f"{name}{signature}   {kind}: {doc}".replace("\n", "\n    "))


def complaint(args, commands):
    from nvm._names import nearest

    if args[0] == "run":
        return "nvm run needs a script\n\n"
    if args[0] in commands:
        return f"nvm {args[0]} takes no arguments\n\n"
    near = nearest(args[0], commands)
    return f"nvm has no command {args[0]!r}" + (f"; did you mean {near!r}?\n\n" if near else "\n\n")


def main(args):
    if args[:1] == ["tune"]:
        from nvm import _tune

        return _tune.command(args[1:])
    if args[:1] == ["run"] and len(args) > 1:
        from nvm import _run

        return _run.run(args[1], args[2:])
    commands = {"info": info, "settings": settings, "ops": ops}
    command = commands.get(args[0] if args else "info")
    if command is None or len(args) > 1:
        print(complaint(args, [*commands, "run", "tune"]) + __doc__, file=sys.stderr)
        return 2
    command()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
