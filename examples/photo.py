"""Develops a photograph: some twenty array operations that become a few kernels.

    python examples/photo.py [picture] [-o result.png]

Without a picture it takes a retina of two megapixels from scikit-image's wheel. The same function runs on NumPy for
comparison.
"""

import argparse
import importlib.util
import os
import pathlib
import re
import statistics
import tempfile
import time

import numpy as np
from PIL import Image

import nvm


def develop(xp, rgb):
    """sRGB bytes (height, width, 3) -> developed sRGB bytes, mean and deviation of the luminance. xp is numpy or
    nvm."""
    x = xp.astype(rgb, xp.float32) / 255
    linear = xp.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)  # sRGB to linear light
    exposed = linear * 2.0**0.6  # plus 0.6 stops
    toned = exposed * (2.51 * exposed + 0.03) / (exposed * (2.43 * exposed + 0.59) + 0.14)  # filmic curve
    lum = 0.2126 * toned[..., 0] + 0.7152 * toned[..., 1] + 0.0722 * toned[..., 2]
    mean, dev = xp.mean(lum), xp.std(lum)
    gain = 1 + 0.2 * xp.tanh((lum - mean) / dev)  # contrast about the mean
    y = xp.clip(toned * gain[..., None], 0, 1)
    srgb = xp.where(y <= 0.0031308, y * 12.92, 1.055 * y ** (1 / 2.4) - 0.055)
    return xp.astype(xp.round(srgb * 255), xp.uint8), mean, dev


def picture(path):
    if path:
        return pathlib.Path(path)
    spec = importlib.util.find_spec("skimage")
    data = pathlib.Path(spec.origin).parent / "data" if spec else pathlib.Path("skimage")
    for name in ("retina.jpg", "hubble_deep_field.jpg"):
        if (data / name).exists():
            return data / name
    raise SystemExit("no picture given, and scikit-image's are not installed; name a picture on the command line")


def milliseconds(f, runs):
    f()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def copy_rate():
    """Bytes per ms that reading and writing 64 MB each reach."""
    x, add = nvm.ones(2**24, dtype=nvm.float32), nvm.jit(lambda x: x + 1)
    return 2 * 2**26 / min(milliseconds(lambda: nvm.eval(add(x)), 1) for _ in range(9))


def kernels(f, runs):
    """What each kernel of a call is, the bytes that it moves, and its best time in ms: NVM_DUMP=run tells them."""
    line = re.compile(r"(\d+)/\d+ ([^,]+), ([^:]+): .*?([\d.]+) us, ([\d.]+) GB/s")
    best = {}
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            nvm.set("dump_dir", folder)
            nvm.set("dump", "run")
            f()
            nvm.set("dump", "")
            nvm.set("dump_dir", "")
            for path in pathlib.Path(folder).iterdir():
                number, what, by, us, rate = line.match(path.read_text()).groups()
                one = float(us) / 1e3, float(us) * float(rate) * 1e3, f"{what}, {by}"
                best[int(number)] = min(one, best.get(int(number), one))
    return [best[i] for i in sorted(best)]


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("picture", nargs="?")
    args.add_argument("-o", "--output", default="demo-out/developed.png")
    args = args.parse_args()
    path = picture(args.picture)
    rgb = np.ascontiguousarray(np.asarray(Image.open(path).convert("RGB")))
    print(f"{path.name}: {rgb.shape[1]} x {rgb.shape[0]} pixels")

    developed = nvm.jit(lambda image: develop(nvm, image))
    print(nvm.explain(developed, rgb))
    result, mean, dev = developed(rgb)
    want, np_mean, np_dev = develop(np, rgb)
    off = int(np.abs(np.asarray(result).astype(int) - want.astype(int)).max())
    print(
        f"luminance {float(mean):.6f} +- {float(dev):.6f} (NumPy {np_mean:.6f} +- {np_dev:.6f}); "
        f"bytes differ by at most {off}"
    )

    ours, theirs = milliseconds(lambda: developed(rgb), 20), milliseconds(lambda: develop(np, rgb), 3)
    print(f"nvm {ours:.1f} ms, NumPy {theirs:.1f} ms: {theirs / ours:.1f} times as fast")
    rate, least = copy_rate(), 2 * rgb.nbytes
    for i, (ms, moved, what) in enumerate(kernels(lambda: developed(rgb), 5), 1):
        print(
            f"  {i}. {what}: {ms:.2f} ms; {moved / 1e6:.1f} MB would take {moved / rate:.2f} at the "
            f"{rate / 1e6:.1f} GB/s of a copy: {ms * rate / max(moved, 1):.1f} times its floor"
        )
    print(
        f"the picture in and out, {least / 1e6:.1f} MB, would take {least / rate:.2f} ms: "
        f"{ours * rate / least:.1f} times the floor"
    )
    os.makedirs(os.path.dirname(args.output) or ".", exist_ok=True)
    Image.fromarray(np.asarray(result)).save(args.output)
    print(f"wrote {args.output}")


if __name__ == "__main__":
    main()
