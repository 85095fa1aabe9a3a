"""Small picture helpers for the examples, in NumPy and the standard library only: PNG and PPM files, boxes drawn in."""

import pathlib
import struct
import zlib

import numpy as np

PALETTE = [
    (230, 60, 60),
    (60, 200, 90),
    (70, 120, 255),
    (250, 200, 40),
    (200, 80, 220),
    (60, 210, 220),
    (255, 140, 40),
    (150, 150, 150),
]
# Letters of 3x5 pixels for labels: 15 bits each, top left pixel first.
GLYPHS = {
    "a": 11245,
    "b": 27566,
    "c": 14627,
    "d": 27502,
    "e": 31143,
    "f": 31140,
    "g": 14699,
    "h": 23533,
    "i": 29847,
    "j": 4714,
    "k": 23469,
    "l": 18727,
    "m": 24557,
    "n": 27501,
    "o": 11114,
    "p": 27556,
    "q": 11123,
    "r": 27565,
    "s": 14478,
    "t": 29842,
    "u": 23407,
    "v": 23402,
    "w": 23549,
    "x": 23213,
    "y": 23186,
    "z": 29351,
    "0": 31599,
    "1": 11415,
    "2": 25255,
    "3": 25230,
    "4": 23497,
    "5": 31118,
    "6": 14831,
    "7": 29330,
    "8": 31727,
    "9": 31694,
    "%": 21157,
}


def read_png(path):
    """RGB pixels (height, width, 3) of an 8-bit, non-interlaced RGB PNG."""
    data, at, packed = pathlib.Path(path).read_bytes(), 8, b""
    while at < len(data):
        length, tag = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if tag == b"IHDR":
            width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", body)
            if (depth, colour, interlace) != (8, 2, 0):
                raise ValueError(f"{path}: only 8-bit RGB without interlacing")
        elif tag == b"IDAT":
            packed += body
        at += length + 12
    raw = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 1 + 3 * width)
    if raw[:, 0].any():
        raise ValueError(f"{path}: only unfiltered rows")
    return raw[:, 1:].reshape(height, width, 3).copy()


def write_png(path, image):
    chunk = lambda tag, body: struct.pack(">I", len(body)) + tag + body + struct.pack(">I", zlib.crc32(tag + body))
    height, width, _ = image.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], 1).tobytes()
    pathlib.Path(path).write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


def write_ppm(path, image):
    height, width, _ = image.shape
    pathlib.Path(path).write_bytes(b"P6\n%d %d\n255\n" % (width, height) + image.tobytes())


def enlarge(image, factor):
    return image.repeat(factor, 0).repeat(factor, 1)


def draw_text(image, x, y, text, colour, scale=2):
    """Writes `text` on a filled background with its top left corner at (x, y); parts outside are cut off."""
    height, width = 7 * scale, (4 * len(text) + 1) * scale
    x, y = max(0, min(x, image.shape[1] - width)), max(0, min(y, image.shape[0] - height))
    image[y : y + height, x : x + width] = colour
    for position, letter in enumerate(text.lower()):
        for bit in range(15):
            if GLYPHS.get(letter, 0) >> (14 - bit) & 1:
                top, left = y + (1 + bit // 3) * scale, x + (1 + 4 * position + bit % 3) * scale
                image[top : top + scale, left : left + scale] = 0
    return image


def draw_box(image, box, colour, text, scale=2):
    x0, y0, x1, y1 = [int(round(v)) for v in box]
    x0, y0, x1, y1 = max(x0, 0), max(y0, 0), min(x1, image.shape[1] - 1), min(y1, image.shape[0] - 1)
    image[y0 : y0 + scale, x0:x1], image[max(y1 - scale, 0) : y1, x0:x1] = colour, colour
    image[y0:y1, x0 : x0 + scale], image[y0:y1, max(x1 - scale, 0) : x1] = colour, colour
    return draw_text(image, x0, y0 - 7 * scale, text, colour, scale)
