import io
import sys

import numpy as np

text = io.StringIO("1,2.5,3\n4,5.5,6\n7,8.5,nan\n")
a = np.genfromtxt(text, delimiter=",")
print(a, np.nanmean(a, axis=0), np.isnan(a).any(), a.shape, a.dtype)
b = np.loadtxt(io.StringIO("# head\n1 2\n3 4\n"))
np.save("kept.npy", b)
c = np.load("kept.npy")
print(np.array_equal(b, c))
np.savez("kept.npz", a=a, b=b)
d = np.load("kept.npz")
print(sorted(d.files), d["b"].sum())
np.savetxt(sys.stdout, b, fmt="%.2f")
with np.printoptions(precision=2, suppress=True):
    print(np.array([1.23456, 1e-9]))
print(np.lexsort((a[:, 0], -a[:, 1])), np.array2string(np.eye(2)))
