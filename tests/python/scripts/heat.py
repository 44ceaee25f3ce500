import numpy as np

n, steps = 64, 200
u = np.zeros((n, n))
u[0, :] = 100.0
u[:, -1] = 50
for _ in range(steps):
    v = u.copy()
    v[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    u = v
print(f"{u.mean():.6f} {u[n // 2, n // 2]:.6f} {np.abs(u).max()} {u.sum(axis=0)[:3].round(4)}")
