import numpy as np

rng = np.random.default_rng(3)
pts = np.concatenate([np.asarray(np.arange(30) % 7, dtype=float).reshape(10, 3) + k * 10 for k in range(3)])
centers = pts[[0, 10, 20]].copy()
for step in range(10):
    d = ((pts[:, None, :] - centers[None]) ** 2).sum(-1)
    label = d.argmin(axis=1)
    new = np.stack([pts[label == k].mean(axis=0) for k in range(3)])
    if np.allclose(new, centers):
        break
    centers = new
print(step, np.round(centers, 3).tolist(), np.bincount(label))
