"""Two layers, forward and backward by hand: the mean of (act(x w1 + b1) w2 + b2 - t)^2 and its gradients, in the words
of nvm or of NumPy."""

import numpy as np

C = float(np.sqrt(2 / np.pi))


def gelu(h, w):
    return 0.5 * h * (1 + w.tanh(C * (h + 0.044715 * h * h * h)))


def gelu_slope(h, w):
    t = w.tanh(C * (h + 0.044715 * h * h * h))
    return 0.5 * (1 + t) + 0.5 * h * (1 - t * t) * (C * (1 + 3 * 0.044715 * h * h))


# the activation, and what it makes of the gradient behind it
RELU = (lambda h, w: w.maximum(h, 0), lambda h, g, w: w.where(h > 0, g, 0))
GELU = (lambda h, w: gelu(h, w) if w is np else w.gelu(h, approximate=True), lambda h, g, w: gelu_slope(h, w) * g)
ACTIVATIONS = {"relu": RELU, "gelu": GELU}


def step(w, act, x, w1, b1, w2, b2, t):
    """w: nvm or numpy. (the loss, the gradients of w1, b1, w2 and b2)"""
    forward, backward = ACTIVATIONS[act]
    h = x @ w1 + b1
    r = forward(h, w)
    off = r @ w2 + b2 - t
    dy = off * (2 / t.size)
    dh = backward(h, dy @ w2.T, w)
    return w.mean(off * off), x.T @ dh, w.sum(dh, axis=0), r.T @ dy, w.sum(dy, axis=0)


def operands(rng, rows, width, hidden, out):
    """In float64: x, w1, b1, w2, b2, t."""
    shapes = (rows, width), (width, hidden), (hidden,), (hidden, out), (out,), (rows, out)
    by = 1, width**-0.5, 1, hidden**-0.5, 1, 1
    return [rng.standard_normal(s) * f for s, f in zip(shapes, by)]
