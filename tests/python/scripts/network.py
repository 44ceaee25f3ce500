import numpy as np


class Layer:
    def __init__(self, n, m, seed):
        r = (np.arange(n * m).reshape(n, m) * 2654435761 % 1000) / 1000 - 0.5
        self.w = r.astype(np.float64) / np.sqrt(n)
        self.b = np.zeros(m)

    def forward(self, x):
        self.x = x
        self.z = x @ self.w + self.b
        return np.maximum(self.z, 0)

    def backward(self, g, lr):
        g = g * (self.z > 0)
        gx = g @ self.w.T
        self.w -= lr * self.x.T @ g / len(g)
        self.b -= lr * g.mean(axis=0)
        return gx


x = np.linspace(-1, 1, 64).reshape(-1, 1)
y = np.abs(x)
l1, l2 = Layer(1, 16, 0), Layer(16, 1, 1)
l2.w[...] = np.abs(l2.w)
losses = []
for _ in range(300):
    out = l2.forward(l1.forward(x))
    err = out - y
    losses.append(float((err**2).mean()))
    l1.backward(l2.backward(2 * err, 0.1), 0.1)
print("%.5f %.5f" % (losses[0], losses[-1]), losses[-1] < losses[0], np.isfinite(l1.w).all())
