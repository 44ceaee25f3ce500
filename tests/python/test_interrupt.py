"""Ctrl-C while something long is planned, compiled or run: KeyboardInterrupt comes before that has ended, and then
everything goes on. Each in a process of its own, which sends itself the signal."""

import os
import subprocess
import sys

import pytest

BEGIN = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler) # a process in the background may begin with it ignored
import numpy as np
import nvm
def begin(seconds):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
x = nvm.asarray(np.linspace(0.1, 1, 1 << 22))
def long(n=100):
    y = x
    for _ in range(n):
        y = nvm.cumulative_sum(nvm.sin(y)) / 1e6 + y
    return y
"""


def process(code, **env):
    p = subprocess.run(
        [sys.executable, "-c", BEGIN + code],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, "NVM_CACHE_DIR": "off", **env},
    )
    assert p.returncode == 0, p.stderr
    return p.stdout.split()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_a_run_ends_early(threads):
    out = process(
        """
y = long()
begin(0.3)
try:
    nvm.eval(y)
    print("ended")
except KeyboardInterrupt:
    print("interrupted")
print(nvm.explain(y)[:9] != "0 kernels", int(np.asarray(long(2))[5] > 0)) # it is pending, so it did not run to its end
""",
        NVM_NUM_THREADS=threads,
    )
    assert out == ["interrupted", "True", "1"]


@pytest.mark.parametrize("step", ["nvm.sin(y) * 1.01 + nvm.exp(-y)", "nvm.concat([nvm.exp(y[:9]), nvm.sin(y[9:])])"])
def test_what_is_evaluated_while_a_graph_is_built_ends_early(step):
    """A graph of some hundred operations is evaluated before it grows further."""
    out = process(f"""
y = x
os.system(f"(sleep 0.5; kill -INT {{os.getpid()}}) &") # a thread of Python would wait for the evaluation
try:
    while True:
        y = {step}
except KeyboardInterrupt:
    print("interrupted")
print(nvm.explain(y)[:9] != "0 kernels") # it is pending
""")
    assert out == ["interrupted", "True"]


def test_a_function_ends_early_and_can_be_called_again():
    out = process("""
f = nvm.jit(lambda n: long(30) + n)
begin(0.3)
try:
    while True:
        f(1.0)
except KeyboardInterrupt:
    print("interrupted")
print(np.array_equal(np.asarray(f(0.0)), np.asarray(f(0.0))))
""")
    assert out == ["interrupted", "True"]


def test_a_handler_that_does_not_raise_lets_it_go_on():
    out = process("""
seen = []
signal.signal(signal.SIGINT, lambda *a: seen.append(1))
nvm.eval(long(3))
y = long(20)
begin(0.2)
nvm.eval(y)
while not seen:
    time.sleep(0.01)
print(len(seen), np.array_equal(np.asarray(y), np.asarray(long(20))))
""")
    assert out == ["1", "True"]


def test_other_threads_go_on():
    """The signal is the main thread's: what another one evaluates is not ended by it."""
    out = process("""
got = []
t = threading.Thread(target=lambda: got.append(np.asarray(long(20))))
t.start()
begin(0.2)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted")
until = time.time() + 120
while not got and time.time() < until:
    time.sleep(0.05)
print(len(got))
""")
    assert out == ["interrupted", "1"]


def test_a_loop_ends_between_two_steps_and_runs_again():
    out = process("""
small = nvm.ones(10)
f = nvm.jit(lambda x, n: nvm.fori_loop(0, n, lambda i, c: nvm.fori_loop(0, 2, lambda j, d: d * 0.5 + 1, c), x))
for g in (f, f.__wrapped__):
    begin(0.3)
    try:
        g(small, 10**9)
        print("ended")
    except KeyboardInterrupt:
        print("interrupted", float(g(small, 3)[0]) < 2)
""")
    assert out == ["interrupted", "True"] * 2
