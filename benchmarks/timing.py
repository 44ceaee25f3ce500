"""What the benchmarks share: a clock for what runs on streams of its own, lines of progress, the commit of a result."""
import contextlib
import itertools
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def say(*text):
    print("#", *text, file=sys.stderr, flush=True)


def slope(call, wait, k, idle=0):
    """Microseconds a call by the wall clock, less what a batch costs as such. idle: seconds to rest before a batch."""
    times = []
    for n in (k, 3 * k):
        time.sleep(idle)
        call()
        wait()
        start = time.perf_counter()
        for _ in range(n):
            call()
        wait()
        times.append(time.perf_counter() - start)
    d = times[1] - times[0]
    return (d if d > 0 else times[1] * 2 / 3) / (2 * k) * 1e6


@contextlib.contextmanager
def processors():
    """What puts this thread on the next processor; it may use all of them again at the end. What else a machine does slows some
    for minutes."""
    mine = os.sched_getaffinity(0)
    ring = itertools.cycle(sorted(mine))
    try:
        yield lambda: os.sched_setaffinity(0, {next(ring)})
    finally:
        os.sched_setaffinity(0, mine)


def commit():
    """NVM_COMMIT, where a copy of the tree is measured that has no history; else what git says; None where neither is known."""
    p = subprocess.run(["git", "-C", str(HERE), "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True)
    return os.environ.get("NVM_COMMIT") or p.stdout.strip() or None
