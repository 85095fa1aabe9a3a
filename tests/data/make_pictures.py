"""Writes tests/data/pictures/* (small files of every kind the decoders read) and pictures.golden, the checksums of what OpenCV makes of them.
Needs Pillow, NumPy and opencv-python-headless; the tests need none of them.
    python tests/data/make_pictures.py            writes both
    python tests/data/make_pictures.py FOLDER     writes the pictures only, in three sizes, for comparisons by hand
"""

import io
import pathlib
import struct
import sys
import zlib

import cv2
import numpy as np
from PIL import Image

HERE = pathlib.Path(__file__).resolve().parent


def scene(height, width, channels, top=255):
    """Slopes, an edge and some noise: enough for every predictor and transform to matter."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = [x / max(width - 1, 1), y / max(height - 1, 1), (x + y) % 7 / 6, np.where(x > y, 0.9, 0.2)]
    value = np.stack(planes[:channels], axis=-1) * top
    noise = np.random.RandomState(height * 1000 + width).uniform(-top / 16, top / 16, value.shape)
    return np.clip(value + noise, 0, top).astype(np.uint16 if top > 255 else np.uint8)


# jpg ---------------------------------------------------------------------------------------------------------------------------


def jpg(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", **{"quality": 85, **options})
    return out.getvalue()


def exif_block(orientation, order, before=()):
    """A TIFF structure with the orientation tag behind the entries of `before`: (tag, type, count, value)."""
    entries = [*before, (0x112, 3, 1, orientation if order == "<" else orientation << 16)]
    body = b"".join(struct.pack(order + "HHII", *e) for e in entries)
    return (b"II" if order == "<" else b"MM") + struct.pack(order + "HIH", 42, 8, len(entries)) + body + bytes(4)


def with_exif(data, tiff):
    payload = b"Exif\0\0" + tiff
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(payload) + 2) + payload + data[2:]


def jpgs(h, w):
    rgb = Image.fromarray(scene(h, w, 3))
    files = {
        "grey": jpg(Image.fromarray(scene(h, w, 1)[..., 0])),
        "444": jpg(rgb, subsampling="4:4:4"),
        "422": jpg(rgb, subsampling="4:2:2"),
        "420": jpg(rgb, subsampling="4:2:0"),
        "progressive": jpg(rgb, progressive=True, quality=60),
        "optimized": jpg(rgb, optimize=True, quality=30),
        "restarts": jpg(rgb, restart_marker_blocks=1),
        "cmyk": jpg(Image.fromarray(scene(h, w, 4), "CMYK")),
        "rgb": jpg(rgb, keep_rgb=True),
    }
    for name, factor in (("440", cv2.IMWRITE_JPEG_SAMPLING_FACTOR_440), ("411", cv2.IMWRITE_JPEG_SAMPLING_FACTOR_411)):
        files[name] = cv2.imencode(".jpg", scene(h, w, 3), [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, factor])[1].tobytes()
    plain = files["420"]
    for orientation in range(1, 9):
        files[f"exif{orientation}"] = with_exif(plain, exif_block(orientation, "<" if orientation % 2 else ">"))
    files["exif_make_first"] = with_exif(plain, exif_block(6, "<", [(0x10F, 2, 4, 0x20202020)]))
    files["exif_broken_first"] = with_exif(
        plain, exif_block(6, "<", [(0x10F, 2, 5000, 9)])
    )  # OpenCV gives up before the orientation
    files["exif_broken_resolution"] = with_exif(plain, exif_block(6, ">", [(0x11A, 5, 1, 70000)]))
    files["exif_orientation_99"] = with_exif(plain, exif_block(99, ">"))
    files["exif_twice"] = with_exif(with_exif(plain, exif_block(3, ">")), exif_block(6, "<"))
    files["cut"] = plain[: len(plain) * 4 // 5]
    files["junk_behind"] = plain + b"junk"
    return {f"jpg_{name}.jpg": data for name, data in files.items()}


# png ---------------------------------------------------------------------------------------------------------------------------


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed_rows(samples, depth):
    """Rows of a sub-picture (h, w, c) with a filter byte each; the filters take turns."""
    h, w, c = samples.shape
    if h == 0 or w == 0:
        return b""
    rows, before = [], None
    step = max(1, c * depth // 8)
    for y in range(h):
        if depth == 16:
            row = samples[y].astype(">u2").tobytes()
        elif depth == 8:
            row = samples[y].astype(np.uint8).tobytes()
        else:
            bits = np.unpackbits(samples[y].reshape(-1, 1).astype(np.uint8), axis=1)[:, 8 - depth :]
            row = np.packbits(bits.reshape(-1)).tobytes()
        row = np.frombuffer(row, np.uint8).astype(int)
        up = before if before is not None else np.zeros_like(row)
        left = np.concatenate([np.zeros(step, int), row])[: len(row)]
        corner = np.concatenate([np.zeros(step, int), up])[: len(row)]
        estimate = left + up - corner
        distance = np.stack([abs(estimate - left), abs(estimate - up), abs(estimate - corner)])
        paeth = np.choose(distance.argmin(axis=0), [left, up, corner])
        kind = y % 5
        rows.append(
            bytes([kind])
            + ((row - [np.zeros_like(row), left, up, (left + up) // 2, paeth][kind]) % 256).astype(np.uint8).tobytes()
        )
        before = row
    return b"".join(rows)


PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def png(samples, colour_type, depth, interlaced=False, before=(), behind=()):
    h, w, _ = samples.shape
    parts = (
        [packed_rows(samples[y::dy, x::dx], depth) for x, y, dx, dy in PASSES] if interlaced else [packed_rows(samples, depth)]
    )
    data = zlib.compress(b"".join(parts))
    half = len(data) // 2
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, colour_type, 0, 0, int(interlaced)))
        + b"".join(before)
        + chunk(b"IDAT", data[:half])
        + chunk(b"IDAT", data[half:])
        + b"".join(behind)
        + chunk(b"IEND", b"")
    )


def pngs(h, w):
    files = {}
    palette = np.random.RandomState(5).randint(0, 256, (256, 3)).astype(np.uint8)
    for interlaced in (False, True):
        tail = "_interlaced" if interlaced else ""
        for depth in (1, 2, 4, 8, 16):
            top = (1 << depth) - 1
            files[f"grey{depth}{tail}"] = png(scene(h, w, 1, top), 0, depth, interlaced)
            if depth <= 8:
                files[f"palette{depth}{tail}"] = png(
                    scene(h, w, 1, top), 3, depth, interlaced, [chunk(b"PLTE", palette[: top + 1].tobytes())]
                )
            if depth >= 8:
                files[f"grey_alpha{depth}{tail}"] = png(scene(h, w, 2, top), 4, depth, interlaced)
                files[f"rgb{depth}{tail}"] = png(scene(h, w, 3, top), 2, depth, interlaced)
                files[f"rgba{depth}{tail}"] = png(scene(h, w, 4, top), 6, depth, interlaced)
    files["palette_short"] = png(scene(h, w, 1, 5), 3, 4, before=[chunk(b"PLTE", palette[:6].tobytes())])
    files["palette_alpha"] = png(
        scene(h, w, 1, 15), 3, 4, before=[chunk(b"PLTE", palette[:16].tobytes()), chunk(b"tRNS", bytes(range(0, 160, 10)))]
    )
    files["grey4_key"] = png(scene(h, w, 1, 15), 0, 4, before=[chunk(b"tRNS", struct.pack(">H", 7))])
    files["rgb8_key"] = png(scene(h, w, 3), 2, 8, before=[chunk(b"tRNS", struct.pack(">HHH", 10, 20, 30))])
    files["rgb16_key"] = png(scene(h, w, 3, 65535), 2, 16, before=[chunk(b"tRNS", struct.pack(">HHH", 10, 20, 30))])
    gamma, srgb = chunk(b"gAMA", struct.pack(">I", 45455)), chunk(b"sRGB", b"\0")
    files["rgb8_gamma"] = png(scene(h, w, 3), 2, 8, before=[gamma])
    files["rgb8_srgb"] = png(scene(h, w, 3), 2, 8, before=[srgb, gamma])
    files["rgb16_gamma"] = png(scene(h, w, 3, 65535), 2, 16, before=[gamma])
    files["rgba8_gamma"] = png(scene(h, w, 4), 6, 8, before=[gamma])
    files["grey8_gamma"] = png(scene(h, w, 1), 0, 8, before=[gamma])
    files["palette8_gamma"] = png(scene(h, w, 1), 3, 8, before=[gamma, chunk(b"PLTE", palette.tobytes())])
    files["text"] = png(
        scene(h, w, 3), 2, 8, before=[chunk(b"tEXt", b"Comment\0hello"), chunk(b"bKGD", struct.pack(">HHH", 1, 2, 3))]
    )
    for orientation in (1, 3, 6, 8):
        files[f"exif{orientation}"] = png(
            scene(h, w, 3), 2, 8, before=[chunk(b"eXIf", exif_block(orientation, "<" if orientation & 1 else ">"))]
        )
    files["exif_behind"] = png(scene(h, w, 3), 2, 8, behind=[chunk(b"eXIf", exif_block(6, ">"))])
    files["cut"] = files["rgb8"][:-20]
    files["no_end"] = files["rgb8"][:-12]
    return {f"png_{name}.png": data for name, data in files.items()}


# bmp ---------------------------------------------------------------------------------------------------------------------------


def bmp(width, height, bits, rows, compression=0, palette=b"", header=40, masks=b"", colours=0):
    """`rows` are the bytes of the pixels. `masks` follow the first 40 bytes of the header."""
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack("<IiiHHIIiiII", header, width, height, 1, bits, compression, len(rows), 2835, 2835, colours, 0) + masks
        info += bytes(max(0, header - len(info)))
    offset = 14 + len(info) + len(palette)
    return b"BM" + struct.pack("<IHHI", offset + len(rows), 0, 0, offset) + info + palette + rows


def padded(rows):
    return b"".join(r + bytes(-len(r) % 4) for r in rows)


def index_rows(indices, bits):
    unpacked = np.unpackbits(indices[..., None].astype(np.uint8), axis=2)[..., 8 - bits :]
    return padded(np.packbits(row.reshape(-1)).tobytes() for row in unpacked[::-1])


def runs(indices, bits):
    """A run-length coded picture that uses runs, plain stretches and skips, rows ended by end-of-line codes."""
    out = b""
    for y, row in enumerate(indices[::-1].tolist()):
        x = 0
        while x < len(row):
            if y % 3 == 2 and x == 2 and len(row) > 8:
                out += b"\0\2\3\0"  # skip three pixels
                x += 3
            elif y % 2 == 0 or len(row) - x < 4:
                n = 1
                while x + n < len(row) and row[x + n] == row[x] and n < 255:
                    n += 1
                out += bytes([n, row[x] if bits == 8 else row[x] << 4 | row[x]])
                x += n
            else:
                n = min(len(row) - x, 7)
                part = row[x : x + n]
                code = bytes(part) if bits == 8 else bytes(a << 4 | b for a, b in zip(part[::2], part[1::2] + [0] * (n % 2)))
                out += bytes([0, n]) + code + bytes(len(code) % 2)
                x += n
        out += b"\0\0"
    return out + b"\0\1"


def bmps(h, w):
    files = {}
    random = np.random.RandomState(9)
    four, three = random.randint(0, 256, (256, 4)).astype(np.uint8), random.randint(0, 256, (256, 3)).astype(np.uint8)
    bgr = scene(h, w, 3)[..., ::-1]
    plain = padded(r.tobytes() for r in bgr[::-1])
    for bits in (1, 4, 8):
        indices = scene(h, w, 1, (1 << bits) - 1)[..., 0]
        rows = index_rows(indices, bits)
        files[f"{bits}"] = bmp(w, h, bits, rows, palette=four[: 1 << bits].tobytes())
        files[f"{bits}_os2"] = bmp(w, h, bits, rows, palette=three[: 1 << bits].tobytes(), header=12)
    grey = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 4, axis=1)
    indices = scene(h, w, 1)[..., 0]
    files["8_grey"] = bmp(w, h, 8, index_rows(indices, 8), palette=grey.tobytes())
    files["8_few_colours"] = bmp(w, h, 8, index_rows(indices, 8), palette=four[:40].tobytes(), colours=40)
    files["8_top_down"] = bmp(w, -h, 8, index_rows(indices[::-1], 8), palette=four.tobytes())
    files["8_runs"] = bmp(w, h, 8, runs(indices // 32, 8), 1, four.tobytes())
    files["8_runs_few"] = bmp(w, h, 8, runs(indices // 200, 8), 1, four[:2].tobytes(), colours=2)
    files["8_runs_end_early"] = bmp(w, h, 8, bytes([min(w, 255), 3]) + b"\0\0\0\2\1\1" + b"\1\5\0\1", 1, four.tobytes())
    files["8_runs_without_line_ends"] = bmp(
        w, h, 8, b"".join(bytes([min(w, 255), y % 256]) for y in range(h)) + b"\0\1", 1, four.tobytes()
    )
    files["4_runs"] = bmp(w, h, 4, runs(indices // 32, 4), 2, four[:16].tobytes())
    v = random.randint(0, 65536, (h, w)).astype("<u2")
    sixteen = padded(r.tobytes() for r in v)
    files["16"] = bmp(w, h, 16, sixteen)
    files["16_555"] = bmp(w, h, 16, sixteen, 3, masks=struct.pack("<III", 0x7C00, 0x3E0, 0x1F))
    files["16_565"] = bmp(w, h, 16, sixteen, 3, masks=struct.pack("<III", 0xF800, 0x7E0, 0x1F))
    files["24"] = bmp(w, h, 24, plain)
    files["24_os2"] = bmp(w, h, 24, plain, header=12)
    files["24_top_down"] = bmp(w, -h, 24, plain)
    files["24_v5"] = bmp(w, h, 24, plain, header=124)
    long = random.randint(0, 2**32, (h, w), dtype=np.uint64).astype("<u4").tobytes()
    files["32"] = bmp(w, h, 32, long)
    files["32_masks_behind"] = bmp(w, h, 32, long, 3, masks=struct.pack("<III", 0xFF0000, 0xFF00, 0xFF))
    files["32_v4"] = bmp(w, h, 32, long, 3, header=108, masks=struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000))
    files["32_v5_rgba"] = bmp(w, h, 32, long, 3, header=124, masks=struct.pack("<IIII", 0xFF, 0xFF00, 0xFF0000, 0xFF000000))
    files["32_odd_masks"] = bmp(w, h, 32, long, 3, header=124, masks=struct.pack("<IIII", 0x3FF00000, 0xFFC00, 0x1F, 0))
    files["32_no_red"] = bmp(w, h, 32, long, 3, header=124, masks=struct.pack("<IIII", 0, 0xFF00, 0xFF, 0))
    files["24_cut"] = files["24"][:-5]
    return {f"bmp_{name}.bmp": data for name, data in files.items()}


def pictures(h, w):
    return {**jpgs(h, w), **pngs(h, w), **bmps(h, w)}


def golden(folder):
    """One line per file and reading: name, grey or rgb, height, width, channels, CRC-32 of the bytes; or the word refused."""
    lines = [f"# OpenCV {cv2.__version__}: file, reading, height, width, CRC-32 of the pixels (red first) or 'refused'"]
    for path in sorted(folder.iterdir()):
        for name, flag in (("grey", cv2.IMREAD_GRAYSCALE), ("rgb", cv2.IMREAD_COLOR)):
            image = cv2.imread(str(path), flag)
            if image is None:
                lines.append(f"{path.name} {name} refused")
                continue
            pixels = np.ascontiguousarray(image[..., ::-1] if image.ndim == 3 else image)
            lines.append(f"{path.name} {name} {image.shape[0]} {image.shape[1]} {zlib.crc32(pixels.tobytes()):08x}")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) > 1:
        folder = pathlib.Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        for h, w in ((1, 1), (37, 50), (64, 129)):
            for name, data in pictures(h, w).items():
                (folder / f"{h}x{w}_{name}").write_bytes(data)
        return
    folder = HERE / "pictures"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for name, data in pictures(11, 19).items():
        (folder / name).write_bytes(data)
    (HERE / "pictures.golden").write_text(golden(folder))


if __name__ == "__main__":
    main()
