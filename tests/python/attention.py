"""Attention as users write it, and what it is in float64; for the tests of the CPU and of a GPU."""

import numpy as np

import nvm


def turned(x):
    return nvm.matrix_transpose(x)


def softmax(s, v):
    return nvm.softmax(s, axis=-1) @ v


def by_hand(s, v):
    e = nvm.exp(s - nvm.max(s, axis=-1, keepdims=True))
    return (e / nvm.sum(e, axis=-1, keepdims=True)) @ v


def divided_last(s, v):
    e = nvm.exp(s - nvm.max(s, axis=-1, keepdims=True))
    return (e @ v) / nvm.sum(e, axis=-1, keepdims=True)


WAYS = {"softmax": softmax, "by hand": by_hand, "divided last": divided_last}


def causal(xp, s, extra):
    before = xp.arange(s.shape[-2])[:, None] >= xp.arange(s.shape[-1])[None, :]
    return xp.where(before, s, -np.inf)


SCORES = {  # functions of the products and of one more array, which has the shape of the masks
    "as they are": lambda xp, s, extra: s,
    "causal": causal,
    "mask": lambda xp, s, extra: xp.where(extra > 0, s, -np.inf),
    "lowest number": lambda xp, s, extra: xp.where(extra > 0, s, -3.4e38),
    "bias": lambda xp, s, extra: s + extra,
    "far away": lambda xp, s, extra: s + 100 * extra - 400,
    "bounded": lambda xp, s, extra: xp.tanh(s / 5) * 5 + extra,
}


def expected(q, k, v, score, extra):
    q, k, v, extra = (np.asarray(x, "f8") for x in (q, k, v, extra))
    s = score(np, (q @ np.swapaxes(k, -1, -2)) / q.shape[-1] ** 0.5, extra)
    e = np.exp(s - s.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)) @ v


def program(way, score):
    def attend(q, k, v, extra):
        return WAYS[way](score(nvm, (q @ turned(k)) * q.shape[-1] ** -0.5, extra), v)

    return nvm.jit(attend)
