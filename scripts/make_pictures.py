#!/usr/bin/env python3
"""Makes the picture of README.md: the profile page of the bundled detector, as a browser shows it.

scripts/make_pictures.py    needs the installed package, playwright and Chromium (scripts/venv test)
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "profile.png"


def main():
    program = pathlib.Path(sys.executable).parent / "openrknn"
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = pathlib.Path(folder) / "profile.html"
        model = ROOT / "examples" / "models" / "boxes.onnx"
        subprocess.run(
            [program, "profile", model, "--platform", "rk3588", "--html", page_file], check=True, stdout=subprocess.DEVNULL
        )
        page = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"]).new_page(
            viewport={"width": 1000, "height": 560}
        )
        page.goto(page_file.as_uri())
        PICTURE.parent.mkdir(exist_ok=True)
        page.screenshot(path=PICTURE)
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
