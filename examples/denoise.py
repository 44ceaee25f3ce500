"""Removes noise from an audio file in the frequency domain: short-time transforms, a threshold, and back.

    python examples/denoise.py [sound.wav] [-o FOLDER]

Without a file it makes one: two tones and noise. It writes the sound without noise and a spectrogram of both as PNG.
"""

import argparse
import pathlib
import struct
import wave
import zlib

import numpy as np

import nvm

SEGMENT, OVERLAP = 512, 384


@nvm.jit
def denoise(x):
    """The sound whose elements of the short-time transform are above four times their median, and both spectrograms in
    decibels."""
    z = nvm.signal.stft(x, nperseg=SEGMENT, noverlap=OVERLAP)[2]
    size = abs(z)
    median = nvm.sort(size, axis=None)[size.size // 2]
    kept = nvm.where(size > 4 * median, z, 0)
    y = nvm.signal.istft(kept, nperseg=SEGMENT, noverlap=OVERLAP)[1][: x.shape[0]]
    return y, *(20 * nvm.log10(abs(s) + 1e-6) for s in (z, kept))


def two_tones(rate=16000, seconds=2.0):
    t = np.arange(int(rate * seconds)) / rate
    tone = 0.3 * np.sin(2 * np.pi * 440 * t) + 0.2 * np.sin(2 * np.pi * (900 + 150 * t) * t)
    return tone, tone + 0.05 * np.random.default_rng(0).standard_normal(t.size)


def write_wav(path, x, rate):
    with wave.open(str(path), "wb") as f:
        f.setnchannels(1)
        f.setsampwidth(2)
        f.setframerate(rate)
        f.writeframes(np.round(np.clip(x, -1, 1) * 32767).astype("<i2").tobytes())


def read_wav(path):
    with wave.open(str(path), "rb") as f:
        if f.getsampwidth() != 2:
            raise SystemExit(f"{path} has samples of {8 * f.getsampwidth()} bits; 16 are read")
        samples = np.frombuffer(f.readframes(f.getnframes()), "<i2").reshape(-1, f.getnchannels())
        return samples.mean(axis=1, dtype=np.float32) / 32768, f.getframerate()


def write_png(path, grey):
    """Writes bytes (height, width) as a picture."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width = grey.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), grey], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    png = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + png)


def picture_of(*spectrograms):
    """The spectrograms above each other, low frequencies at the bottom, 80 decibels from black to white."""
    all_rows = nvm.concat([nvm.flip(s, axis=0) for s in spectrograms])
    top = nvm.max(all_rows)
    return np.asarray(nvm.round(255 * nvm.clip((all_rows - top) / 80 + 1, 0, 1)).astype(nvm.uint8))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sound", nargs="?", type=pathlib.Path, help="a WAV file with samples of 16 bits")
    parser.add_argument(
        "-o", "--out", type=pathlib.Path, default=pathlib.Path("denoised"), help="folder of the results"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    sound = options.sound
    if not sound:
        clean, noisy = two_tones()
        sound = options.out / "noisy.wav"
        write_wav(sound, noisy, 16000)
    x, rate = read_wav(sound)
    y, before, after = denoise(nvm.asarray(x))
    write_wav(options.out / "clean.wav", np.asarray(y), rate)
    write_png(options.out / "spectrogram.png", picture_of(before, after))
    if not options.sound:
        ratio = lambda s: 10 * np.log10((clean**2).mean() / ((np.asarray(s) - clean) ** 2).mean())
        print(f"signal to noise: {ratio(x):.1f} dB before, {ratio(y):.1f} dB after")
    print(f"{options.out}: clean.wav, spectrogram.png")


if __name__ == "__main__":
    main()
