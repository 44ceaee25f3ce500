"""What the benchmarks share: a clock for what runs on streams of its own, lines of progress, the commit of a result."""
import contextlib
import itertools
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def say(*text):
    print("#", *text, file=sys.stderr, flush=True)


def slope(call, wait, k, idle=0, rounds=1):
    """Microseconds a call by the wall clock, less what a batch costs as such: by the medians of batches of k and of 3 k. idle:
    seconds to rest before a batch."""
    times = {k: [], 3 * k: []}
    for _ in range(rounds):
        for n, spent in times.items():
            time.sleep(idle)
            call()
            wait()
            start = time.perf_counter()
            for _ in range(n):
                call()
            wait()
            spent.append(time.perf_counter() - start)
    few, many = (statistics.median(t) for t in times.values())
    return (many - few if many > few else many * 2 / 3) / (2 * k) * 1e6


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
