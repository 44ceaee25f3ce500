"""Random programs of views of views, writes and reads, as data: made along with NumPy, executed by whoever has its
names. Copies, exports and results that wait are taken on the way, and looked at in the end: none sees a later write."""

import numpy as np


def view(xp, kind, a, arg):
    if kind == "reshape":
        return a.reshape(arg)
    if kind in ("ravel", "squeeze"):
        return getattr(a, kind)()
    if kind in ("T", "mT", "real", "imag"):
        return getattr(a, kind)
    if kind == "key":
        return a[arg]
    if kind == "diagonal":
        return xp.linalg.diagonal(a, offset=arg)
    if kind == "row":
        return list(a)[arg]
    if kind == "unstack":
        return xp.unstack(a, axis=arg[0])[arg[1]]
    if kind == "same":
        return xp.astype(a, a.dtype, copy=False)
    if kind in ("flip", "expand_dims"):
        return getattr(xp, kind)(a, axis=arg)
    if kind == "moveaxis":
        return xp.moveaxis(a, *arg)
    return getattr(xp, kind)(a, arg)  # permute_dims, broadcast_to


def write(kind, a, arg, names):
    """One write; names are all variables."""
    if kind == "set":
        a[arg[0]] = arg[1]
    elif kind == "from":
        a[...] = names[arg]
    elif kind == "add":
        a += arg
    elif kind == "scale":
        a[arg[0]] *= arg[1]
    elif kind == "mask":
        a[a.real > arg] = -1
    elif kind == "window":
        a[arg[0]] = names[arg[1]][arg[2]]
    elif kind == "element":
        a[arg[0]] = a[arg[1]] + arg[2]
    elif kind in ("scatter", "masked"):
        a[arg[0]] = arg[1]
    elif kind == "gather":
        a[arg[0]] = names[arg[1]][arg[2]]
    elif kind == "swap":
        a[arg[0]], a[arg[1]] = a[arg[1]], a[arg[0]]
    return a


def pick(xp, a, key):
    """What index arrays select: a copy, which lies in row-major order; NumPy's need not."""
    return a[key].copy() if xp is np else a[key]


def keep(xp, kind, a, traced):
    """Something that holds what a shows now, whatever is written later."""
    if kind == "pending":
        return a * 1
    if kind == "element":
        return a[tuple(n // 2 for n in a.shape)] + 0
    if kind == "copy" or xp is np or traced:
        return a.copy()
    return np.asarray(a) if kind == "export" else xp.flip(xp.flip(a).eval().copy())


def run(xp, x, program, traced=False):
    """The variables in the end, and on the way the sums that were read and what was kept."""
    names, reads = [x], []
    for step, kind, i, arg in program:
        if step == "view":
            names.append(view(xp, kind, names[i], arg))
        elif step == "pick":
            names.append(pick(xp, names[i], arg))
        elif step == "write":
            names[i] = write(kind, names[i], arg, names)
        elif step == "refused":
            try:
                write(kind, names[i], arg, names)
            except ValueError:
                continue
            raise AssertionError(f"a write to {kind} {arg} of variable {i} should be an error")
        elif step == "keep":
            reads.append(keep(xp, kind, names[i], traced))
        else:
            reads.append(xp.sum(names[i] * 2))
    return names, reads


def basic_key(rng, shape):
    key = []
    for n in shape:
        what = rng.integers(4)
        if what == 0 and n:
            key.append(int(rng.integers(-n, n)))
        elif what < 3:
            step = int(rng.choice([-2, -1, 1, 1, 2]))
            key.append(slice(int(rng.integers(0, n + 1)), None, step) if rng.integers(2) else slice(None, None, step))
        else:
            break
    if rng.integers(4) == 0:
        key.insert(int(rng.integers(len(key) + 1)), None)
    if rng.integers(5) == 0:  # before an integer it moves that to another dimension
        integers = [i for i, k in enumerate(key) if isinstance(k, int)]
        key.insert(int(rng.integers(integers[-1] + 1 if integers else 0, len(key) + 1)), Ellipsis)
    return tuple(key)


def array_key(rng, shape):
    """A key of lists, slices and integers, with one list at least, all in range; None if there is none."""
    if not shape or 0 in shape:
        return None
    key, common = [], [(2,), (3,), (1,), (2, 1)][rng.integers(4)]
    for n in shape:
        what = rng.integers(6)
        if what == 0:
            key.append(int(rng.integers(-n, n)))
        elif what == 1:
            key.append(slice(None, None, int(rng.choice([-1, 1, 2]))))
        elif what == 2 and key and Ellipsis not in key:
            break
        else:
            key.append(rng.integers(-n, n, common[: rng.integers(1, 3)]).tolist())
        if rng.integers(8) == 0:
            key.append(None if Ellipsis in key or rng.integers(2) else Ellipsis)
    if not any(isinstance(k, list) for k in key):
        key[:] = [rng.integers(-shape[0], shape[0], common).tolist()]
    return tuple(key)


def some_shape(rng, size):
    shape = []
    while size > 1 and rng.integers(4):
        d = int(rng.choice([k for k in range(1, size + 1) if size % k == 0]))
        shape.append(d)
        size //= d
    shape.append(size)
    return tuple(int(d) for d in rng.permutation(shape))


def some_view(rng, a):
    r = a.ndim
    kinds = [
        "T",
        "ravel",
        "squeeze",
        "reshape",
        "reshape",
        "key",
        "key",
        "key",
        "same",
        "expand_dims",
        "real",
        "imag",
        "broadcast_to",
    ] + ["flip", "permute_dims", "moveaxis", "row", "unstack"] * (r > 0)
    kinds += ["mT", "diagonal"] * (r > 1)
    kind = str(rng.choice(kinds))
    arg = None
    if kind == "reshape":
        arg = some_shape(rng, a.size) if a.size else (0,)
    elif kind == "key":
        arg = basic_key(rng, a.shape)
    elif kind == "permute_dims":
        arg = tuple(int(k) for k in rng.permutation(r))
    elif kind == "moveaxis":
        arg = tuple(int(k) for k in rng.integers(-r, r, 2))
    elif kind == "expand_dims":
        arg = int(rng.integers(-r - 1, r + 1))
    elif kind == "flip":
        arg = None if not r or rng.integers(2) else int(rng.integers(-r, r))
    elif kind == "broadcast_to":
        arg = (int(rng.integers(1, 3)),) + tuple(int(rng.integers(1, 4)) if n == 1 else n for n in a.shape)
    elif kind == "diagonal":
        arg = int(rng.integers(-1, 2))
    elif kind == "row":
        arg = int(rng.integers(a.shape[0])) if a.shape[0] else None
    elif kind == "unstack":
        axis = int(rng.integers(-r, r))
        arg = (axis, int(rng.integers(a.shape[axis]))) if a.shape[axis] else None
    return None if arg is None and kind in ("row", "unstack") else (kind, arg)


def some_indexed_write(rng, names, a, kind):
    """A write through index arrays or a mask: of a number, of values, of elements of the same array or another."""
    if kind == "masked":
        if not a.ndim:
            return None
        key = rng.integers(0, 2, a.shape[: rng.integers(1, a.ndim + 1)]).astype(bool)
    else:
        key = array_key(rng, a.shape)
    if key is None:
        return None
    shape, value = a[key].shape, float(rng.integers(-9, 9))
    if kind == "list":
        return "scale", (key, value)
    if kind == "gather":
        j = int(rng.integers(len(names)))
        b = names[j]
        fits = isinstance(b, np.ndarray) and b.ndim and b.shape[0] and (np.iscomplexobj(a) or not np.iscomplexobj(b))
        at = rng.integers(-b.shape[0], b.shape[0], shape[:1]).tolist() if fits and shape else None
        fits = at is not None and len(shape) == b.ndim and b[at].shape == shape
        return (kind, (key, j, at)) if fits else None
    values = rng.integers(-9, 9, shape).astype(float)
    return kind, (key, values if rng.integers(2) else value)


def some_write(rng, names, i, lists):
    a = names[i]
    kind = str(
        rng.choice(
            ["set", "set", "from", "add", "scale", "index", "mask", "swap", "window", "element"]
            + ["scatter", "scatter", "masked", "gather", "list"]
        )
    )
    value = float(rng.integers(-9, 9))
    if kind == "from":
        fits = [
            j
            for j, b in enumerate(names)
            if np.shape(b) == a.shape[a.ndim - np.ndim(b) :] and (np.iscomplexobj(a) or not np.iscomplexobj(b))
        ]
        return (kind, int(rng.choice(fits))) if fits else None
    if kind == "window":
        j, to = int(rng.integers(len(names))), basic_key(rng, a.shape)
        if not isinstance(names[j], np.ndarray) or (np.iscomplexobj(names[j]) and not np.iscomplexobj(a)):
            return None
        key = to if np.shape(names[j]) == a.shape and rng.integers(2) else basic_key(rng, names[j].shape)
        fits = np.shape(names[j][key]) == np.shape(a[to])
        return (kind, (to, j, key)) if fits else None
    if kind == "element":
        if not a.ndim or not a.size:
            return None
        return kind, tuple(tuple(int(rng.integers(-n, n)) for n in a.shape) for _ in range(2)) + (value,)
    if kind in ("scatter", "gather", "list", "masked"):
        return some_indexed_write(rng, names, a, kind) if lists else None
    if kind == "index":
        if not a.ndim or not a.shape[0] or not lists:
            return None
        n = a.shape[0]
        return "set", ([int(k) for k in rng.integers(-n, n, rng.integers(1, 4))], value)
    if kind == "swap":
        if a.ndim != 1 or not a.size:
            return None
        return kind, tuple(int(k) for k in rng.integers(-a.size, a.size, 2))
    if kind in ("set", "scale"):
        return kind, (basic_key(rng, a.shape), value)
    return kind, value


def random_program(seed, length=9):
    """An array and a program over it, which NumPy has executed once: what it refuses is in it as refused."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 4)))
    x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    if rng.integers(3) == 0:
        x = x + 1j * x[::-1]
    start, names, program = x.copy(), [x], []
    while len(program) < length:
        i = int(rng.integers(len(names)))
        a, what = names[i], rng.integers(12)
        if not isinstance(a, np.ndarray):
            continue
        if what < 4:
            made = some_view(rng, a)
            if made:
                program.append(("view", made[0], i, made[1]))
                names.append(view(np, made[0], a, made[1]))
        elif what < 9:
            made = some_write(rng, names, i, True)
            if made:
                try:
                    write(made[0], a, made[1], names)
                except ValueError:
                    program.append(("refused", made[0], i, made[1]))
                else:
                    program.append(("write", made[0], i, made[1]))
        elif what < 10:
            key = array_key(rng, a.shape) if rng.integers(2) else None
            program.append(("pick", "", i, key) if key else ("read", "sum", i, None))
            if key:
                names.append(pick(np, a, key))
        elif a.size:
            program.append(("keep", str(rng.choice(["copy", "export", "pending", "valued", "element"])), i, None))
    return start, program
