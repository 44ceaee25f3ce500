import numpy as np

rng = np.random.default_rng(7)
n = 20000
p = rng.uniform(-1, 1, size=(n, 2))
pi = 4 * np.mean(np.sum(p**2, axis=1) <= 1)
assert abs(pi - np.pi) < 0.06, pi
paths = 100 * np.exp(np.cumsum(rng.normal(0.0002, 0.01, size=(500, 50)), axis=1))
price = np.maximum(paths[:, -1] - 100, 0).mean()
assert 1 < price < 6, price
idx = rng.permutation(10)
assert sorted(idx.tolist()) == list(range(10))
c = rng.choice([1, 2, 3], size=1000, p=[0.2, 0.3, 0.5])
print(np.unique(c).tolist(), np.bincount(c).argmax())
