import numpy as np

fs = 200.0
t = np.arange(0, 2, 1 / fs)
s = np.sin(2 * np.pi * 12 * t) + 0.5 * np.sin(2 * np.pi * 33 * t)
spec = np.abs(np.fft.rfft(s * np.hanning(len(s))))
f = np.fft.rfftfreq(len(s), 1 / fs)
top = np.argsort(spec)[::-1][:4]
print(np.sort(f[top]), spec.max().round(3))
k = np.ones(9) / 9
sm = np.convolve(s, k, mode="same")
print(
    sm[:4].round(4),
    np.correlate(s[:20], s[:5], "valid").round(3)[:3],
    np.unwrap(np.angle(np.exp(1j * t * 9)))[-1].round(4),
)
rs = np.fft.irfft(np.fft.rfft(s), n=len(s))
print(np.allclose(rs, s), np.diff(np.sign(s)).nonzero()[0][:6])
