"""What a new process does before its first value: it opens only the libraries that it needs."""

import ctypes
import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np, nvm
x = nvm.asarray(np.linspace(0, 1, 1000))
print(np.asarray(nvm.sum(nvm.sin(x) * x)).tobytes().hex())
opened = open('/proc/self/maps').read()
print(*sorted(name for name in ('libLLVM', 'libnvm_llvm', 'libcudart', 'libnvrtc') if name in opened))
print(nvm.counters()['kernels_compiled'], nvm.counters()['kernels_loaded'])
"""


def alone(store, program=PROGRAM, **env):
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("NVM_")}, "NVM_CACHE_DIR": str(store), **env}
    p = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=300)
    assert p.returncode == 0, p.stderr
    value, opened, counts = p.stdout.splitlines()
    return value, opened.split(), [int(c) for c in counts.split()]


def has(library):
    try:
        return bool(ctypes.CDLL(library))
    except OSError:
        return False


def test_a_process_whose_code_is_in_the_store_never_opens_llvm(tmp_path):
    first, opened, (compiled, _) = alone(tmp_path, NVM_TIER="1", NVM_CUDA_DIR="off")
    if not compiled:
        pytest.skip("there is no LLVM, or no native code for this CPU")
    assert "libnvm_llvm" in opened
    later, opened, (compiled, loaded) = alone(tmp_path, NVM_TIER="1", NVM_CUDA_DIR="off")
    assert (later, opened, compiled) == (first, [], 0) and loaded > 0


@pytest.mark.skipif(has("libcuda.so.1"), reason="there is a driver")
def test_without_a_driver_the_cuda_runtime_is_not_opened(tmp_path):
    assert "libcudart" not in alone(tmp_path, NVM_TIER="0")[1]
