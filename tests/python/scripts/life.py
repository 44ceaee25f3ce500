import numpy as np

g = np.zeros((16, 16), dtype=bool)
g[1, 2] = g[2, 3] = g[3, 1] = g[3, 2] = g[3, 3] = True
for _ in range(20):
    n = sum(np.roll(np.roll(g, i, 0), j, 1).astype(int) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    g = (n == 3) | (g & (n == 2))
print(*np.argwhere(g).tolist())
print("".join("#" if c else "." for c in g[6]))
