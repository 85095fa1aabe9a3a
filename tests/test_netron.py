"""A .rknn opens in the real Netron, served on loopback and shown in headless Chromium."""
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from rknn.api import RKNN


@pytest.mark.parametrize("kind", ["rknn", "model"])
def test_netron_shows_the_graph(tmp_path, shapes_model, root, monkeypatch, kind):
    """The finished file, and the .model of hybrid quantization's step 1."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    pytest.importorskip("netron", reason="netron is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        pytest.skip("chromium is not installed")
    path = tmp_path / "shapes.rknn"
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(str(shapes_model)) == 0
    if kind == "model":
        monkeypatch.chdir(tmp_path)
        (tmp_path / "dataset.txt").write_text(str(next((root / "examples" / "models" / "pictures").glob("shape_*.png"))))
        assert rknn.hybrid_quantization_step1(dataset="dataset.txt") == 0
        path = tmp_path / "shapes.model"
    else:
        assert rknn.build(do_quantization=False) == 0 and rknn.export_rknn(str(path)) == 0
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    program = pathlib.Path(sys.executable).parent / "netron"
    server = subprocess.Popen([program, "--host", "127.0.0.1", "--port", str(port), path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env=dict(os.environ, BROWSER="true"))
    try:
        url = f"http://127.0.0.1:{port}/"
        for _ in range(100):
            try:
                urllib.request.urlopen(url, timeout=1).read()
                break
            except OSError:
                time.sleep(0.1)
        with playwright.sync_playwright() as p:
            browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking",
                                                                        "--disable-component-update", "--disable-sync", "--no-first-run"])
            context = browser.new_context(viewport={"width": 1400, "height": 1000})
            context.add_cookies([{"name": "consent", "value": "1", "url": url}])   # Netron asks before it shows anything
            page = context.new_page()
            page.goto(url)
            page.wait_for_selector(".graph-node", timeout=30000)
            page.get_by_text("NNBG", exact=True).wait_for()
            page.get_by_text("\u0192").click()   # shows what is inside the node: the compiled graph
            page.locator("svg text", has_text="InputOperator").first.wait_for()
            page.screenshot(path=str(tmp_path / "netron.png"))
            shown = page.content()
            browser.close()
        for name in ("ConvRelu", "InputOperator", "OutputOperator", "Concat", "1×3×64×64"):
            assert name in shown, f"{name} is not shown"
        assert (tmp_path / "netron.png").stat().st_size > 5000
    finally:
        server.terminate()
        server.wait(10)
