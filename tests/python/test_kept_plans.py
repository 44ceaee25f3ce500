"""Plans of large graphs in the disk cache: a later process plans nothing, whatever has become of the rows its bits are
the same, and other sizes, settings and tuning records have plans of their own."""

import os
import sqlite3
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np, nvm

def heat(u, s):
    for i in range(30):
        u[1:-1, 1:-1] += s * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        u[i % u.shape[0]] = nvm.sum(u, axis=0) / 100
    return u, u[:, ::2], nvm.sum(u)

n = int(sys.argv[1])
u = nvm.asarray(np.linspace(0, 1, n * 30).reshape(n, 30))
for again in range(2):
    got = nvm.jit(heat)(nvm.asarray(u, copy=True), 0.1)
    print(*(np.asarray(x).tobytes().hex() for x in got))
print(nvm.counters()["programs_planned"])
"""


def alone(store, n=20, **env):
    """The results of a process, and how many programs it planned."""
    env = {
        **{k: v for k, v in os.environ.items() if not k.startswith("NVM_")},
        "NVM_CACHE_DIR": str(store),
        "NVM_CUDA_DIR": "off",
        **env,
    }
    p = subprocess.run([sys.executable, "-c", PROGRAM, str(n)], env=env, capture_output=True, text=True, timeout=300)
    assert p.returncode == 0, p.stderr
    first, second, planned = p.stdout.splitlines()
    assert first == second
    return first, int(planned)


def change_rows(store, sql):
    with sqlite3.connect(store / "cache.db") as db:
        return db.execute(sql).rowcount


@pytest.fixture
def kept(tmp_path):
    value, planned = alone(tmp_path)
    assert planned == 1
    return tmp_path, value


def test_a_later_process_plans_nothing(kept):
    store, value = kept
    assert alone(store) == (value, 0)
    assert alone(store, NVM_TIER="1") == (value, 1)  # other settings
    assert alone(store, NVM_TIER="1") == (value, 0)
    assert alone(store, NVM_FUSE="off")[0] == value
    assert alone(store, n=21)[1] == 1


def test_a_damaged_row_is_planned_anew(kept):
    store, value = kept
    assert change_rows(
        store, "UPDATE entry1 SET blob = substr(blob, 1, 500) || zeroblob(size - 500) WHERE kind = 'plan'"
    )
    assert alone(store) == (value, 1)
    assert alone(store) == (value, 0)


def test_a_row_of_another_graph_is_planned_anew(kept):
    store, value = kept
    alone(store, n=21)
    assert change_rows(store, "UPDATE entry1 SET id = id + 1 WHERE kind = 'plan'") == 2
    assert alone(store) == (value, 1)


def test_plans_that_are_asked_for_are_made(kept):
    store, value = kept
    for env in ({"NVM_CHECK": "plan"}, {"NVM_TUNE": "measure"}, {"NVM_CACHE_DIR": "off"}):
        assert alone(store, **env) == (value, 1)


def test_tuning_records_outdate_plans(kept):
    store, value = kept
    env = dict(os.environ, NVM_CACHE_DIR=str(store))
    subprocess.run([sys.executable, "-c", "from nvm import _nvm; _nvm.tune_clear()"], env=env, check=True)
    assert change_rows(store, "DELETE FROM entry1 WHERE kind = 'plan'") == 0
    assert alone(store) == (value, 1)


def test_a_store_that_takes_no_rows_is_no_failure(kept):
    """As if it were read-only, or the disk full: what is there is read, what is new is planned each time."""
    store, value = kept
    other = alone(store, n=21, NVM_CACHE_DIR="off")[0]
    for change in ("INSERT", "UPDATE", "DELETE"):
        change_rows(
            store, f"CREATE TRIGGER no_{change} BEFORE {change} ON entry1 BEGIN SELECT RAISE(FAIL, 'full'); END"
        )
    assert alone(store) == (value, 0)
    assert alone(store, n=21) == (other, 1)
    assert alone(store, n=21) == (other, 1)
