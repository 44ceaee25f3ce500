"""Transforms whose rows pass through several steps in strips: which steps do, and that this changes no bit."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

import nvm


def draw(shape, dtype, seed=5):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def power(z):
    return z.real**2 + z.imag**2


def middle(x, w):
    """The spectrum's rows are no multiple of what a block of a kernel has."""
    return nvm.fft.irfft(nvm.fft.rfft(x * w) * nvm.fft.rfft(w), n=x.shape[-1])


PROGRAMS = {  # and the steps that run in strips
    "windowed": (lambda x, w: nvm.fft.rfft(x * w), "1 and 2"),
    "spectrum": (lambda x, w: power(nvm.fft.rfft(x * w)), "1, 2 and 3"),
    "mean of spectra": (lambda x, w: nvm.mean(power(nvm.fft.rfft(x * w)), axis=-2), "1, 2 and 3"),
    "greatest": (lambda x, w: nvm.max(power(nvm.fft.rfft(x)), axis=-2), "1 and 2"),
    "energies": (lambda x, w: nvm.sum(power(nvm.fft.rfft(x * w)), axis=-1), "1, 2 and 3"),
    "filtered": (middle, ""),
    "every second": (lambda x, w: nvm.fft.rfft(x * w)[..., ::2] + 1, ""),
    "its spectrum too": (lambda x, w: (nvm.fft.rfft(x * w), power(nvm.fft.rfft(x * w))), ""),
    "shifted rows": (lambda x, w: power(nvm.fft.rfft(x * w))[..., 1:, :] - power(nvm.fft.rfft(x * w))[..., :-1, :], ""),
    "a kernel's": (lambda x, w: nvm.mean(power(nvm.fft.fft((x * w)[..., :256])), axis=-2), ""),
    "columns": (lambda x, w: nvm.fft.rfft(x * w, axis=-2) * 2, ""),
}


@pytest.mark.parametrize("name", [n for n in PROGRAMS if PROGRAMS[n][1]])
def test_steps_in_strips(name):
    f, steps = PROGRAMS[name]
    text = nvm.jit(f).explain(nvm.asarray(draw((4096, 512), "float32")), nvm.asarray(draw(512, "float32")))
    assert f"steps {steps} run together in " in text, text


def test_one_strip_is_none():
    text = nvm.jit(PROGRAMS["windowed"][0]).explain(*(nvm.asarray(draw(s, "float32")) for s in ((1, 512), 512)))
    assert "strip" not in text, text


def test_an_operand_that_the_result_overwrites():
    """What a later strip reads must not have been overwritten by an earlier one."""
    for n in (500, 512):
        x, w = draw((600, n), "float32"), draw(n, "float32")
        want = np.asarray(nvm.fft.irfft(nvm.fft.rfft(nvm.asarray(x) * w) * 2, n=n))
        a = nvm.asarray(x.copy())
        a[:] = nvm.fft.irfft(nvm.fft.rfft(a * w) * 2, n=n)
        assert np.asarray(a).tobytes() == want.tobytes(), n


DIGEST = """
import hashlib, numpy as np, nvm, sys
sys.path.insert(0, {here!r})
import test_fft_strips as t
d = hashlib.sha256()
for shape, dtype in (((300, 500), "float32"), ((2, 3, 70, 257), "float32"), ((130, 1000), "float64"),
                     ((65, 127), "float32"), ((600, 2, 360), "float64")):
    x, w = t.draw(shape, dtype), t.draw(shape[-1], dtype)
    for name, (f, _) in t.PROGRAMS.items():
        out = nvm.jit(f)(nvm.asarray(x), nvm.asarray(w))
        for y in out if isinstance(out, tuple) else (out,):
            d.update(np.asarray(y).tobytes())
print(d.hexdigest())
"""


def test_strips_change_no_bit():
    def digest(**settings):
        env = os.environ | {"NVM_" + k: v for k, v in settings.items()}
        code = DIGEST.format(here=os.path.dirname(__file__))
        return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout

    want = digest(FUSE="off")
    assert len(want) > hashlib.sha256().digest_size
    for settings in (dict(NUM_THREADS="1"), dict(NUM_THREADS="3"), dict(TIER="0", NUM_THREADS="2"), dict(CHECK="plan")):
        assert digest(**settings) == want, settings
