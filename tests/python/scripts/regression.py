import numpy as np
from numpy import newaxis, pi
from numpy.linalg import eigh, inv, lstsq, norm, qr

x = np.linspace(-1, 1, 40)
A = np.vander(x, 4, increasing=True)
y = 1 + 2 * x - 0.5 * x**3 + 0.01 * np.cos(50 * x)
coef, res, rank, sv = lstsq(A, y, rcond=None)
print(coef.round(4), res.round(6), rank, sv.round(3))
q, r = qr(A)
print(np.allclose(q @ r, A), norm(inv(A.T @ A) @ (A.T @ y) - coef) < 1e-10)
w, v = eigh(A.T @ A)
print(w.round(4), np.polyfit(x, y, 3).round(4), np.roots([1, -6, 11, -6]).real.round(6))
print(x[:, newaxis].shape, np.einsum("ij,ik->jk", A, A).trace().round(4), pi)
