"""Processes of their own, with a store of their own, for tests of what is compiled, stored and loaded."""

import os
import subprocess
import sys
import textwrap


def start(text, folder, tier, **env):
    """Starts Python with the text; the store is in the folder."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text)],
        env={**os.environ, "NVM_CACHE_DIR": str(folder), "NVM_TIER": tier, **env},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def end(p):
    """The words that the process has printed, and what it has said to stderr."""
    out, err = p.communicate(timeout=280)
    assert p.returncode == 0, err[-2000:]
    return out.split(), err
