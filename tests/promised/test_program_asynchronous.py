"""Streams are context managers, results are awaitable; lazily and jitted."""

import asyncio

import numpy as np
import pytest

import nvm


@pytest.mark.parametrize("make", [lambda f: f, nvm.jit])
def test_await_behind_a_stream(make):
    f = make(lambda x: nvm.sin(x) * 2)
    x = np.linspace(0, 1, 1000)

    async def main():
        with nvm.Stream() as s:
            y = f(nvm.asarray(x))
        result = await y
        s.sync()
        assert result is y and y.ready()
        return np.asarray(result)

    np.testing.assert_allclose(asyncio.run(main()), np.sin(x) * 2, rtol=1e-14)
