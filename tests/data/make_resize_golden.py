"""Writes resize.golden: what OpenCV's bilinear resize makes of pictures of noise, as checksums. Needs NumPy and opencv-python-headless;
the tests need neither."""

import pathlib
import zlib

import cv2
import numpy as np

# height, width -> height, width: nothing, halves, other fractions, growth, one axis only, single rows and columns, sizes networks use
SIZES = """
5 7 5 7, 8 12 4 6, 2 2 1 1, 9 13 4 6, 7 9 4 5, 8 12 4 12, 8 12 8 6, 8 12 4 3, 12 12 3 3, 12 18 4 6, 13 17 5 4, 4 6 8 12, 5 7 10 14, 5 7 13 9,
1 1 4 5, 1 9 1 4, 1 9 3 20, 9 1 4 1, 9 1 20 3, 31 1 1 1, 1 31 1 1, 40 50 1 1, 3 5 64 48, 2 2 33 65, 17 23 16 22, 17 23 18 24, 16 16 15 17,
100 75 99 76, 64 48 32 24, 66 50 33 25, 120 160 96 96, 120 160 112 96, 97 131 28 28, 60 80 224 224, 300 400 224 224, 481 640 320 320,
375 500 299 299, 90 160 48 320, 11 300 48 320, 127 255 64 128, 255 127 128 64, 257 129 64 32, 10 1000 5 500, 10 1000 10 333, 1000 10 999 10,
33 77 100 7, 77 33 7 100, 7 7 6 6, 6 6 7 7, 3 3 2 2, 2 3 3 2, 19 11 224 224
"""


def noise(height, width, channels):
    """Bytes of a linear congruential generator; src/data/resize_test.cpp makes the same ones."""
    state = height * 65536 + width * 256 + channels
    out = bytearray()
    for _ in range(height * width * channels):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(state >> 24)
    return np.frombuffer(bytes(out), np.uint8).reshape(height, width, channels)


def main():
    lines = [f"# OpenCV {cv2.__version__}: height, width, channels of the source; new height, width; CRC-32 of the pixels"]
    for size in SIZES.replace("\n", " ").split(","):
        h, w, to_h, to_w = map(int, size.split())
        for channels in (1, 3):
            out = cv2.resize(noise(h, w, channels), (to_w, to_h), interpolation=cv2.INTER_LINEAR)
            lines.append(f"{h} {w} {channels} {to_h} {to_w} {zlib.crc32(np.ascontiguousarray(out).tobytes()):08x}")
    pathlib.Path(__file__).resolve().with_name("resize.golden").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
