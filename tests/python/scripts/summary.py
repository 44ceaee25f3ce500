import math

import numpy as np

data = np.sin(np.linspace(0, 20, 501)) * 3 + np.linspace(0, 1, 501)
hist, edges = np.histogram(data, bins=8)
print(hist, edges.round(3))
print("%.4f %.4f %.4f" % (np.median(data), np.std(data, ddof=1), np.percentile(data, 95)))
print(np.corrcoef(data[:-1], data[1:]).round(5))
z = (data - data.mean()) / data.std()
print((np.abs(z) > 1.2).sum(), int(np.argmax(z)), np.quantile(data, [0.1, 0.5, 0.9]).round(4))
print(np.interp([0.5, 1.5], [0, 1, 2], [1, 3, 2]), np.trapezoid(data, dx=0.1).round(4), math.floor(data.sum()))
