"""A .rknn opens in the real Netron, served on loopback and shown in headless Chromium."""
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from rknn.api import RKNN


def test_netron_shows_the_graph(tmp_path, shapes_model):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    pytest.importorskip("netron", reason="netron is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        pytest.skip("chromium is not installed")
    path = tmp_path / "shapes.rknn"
    rknn = RKNN()
    rknn.config(target_platform="rk3588")
    assert rknn.load_onnx(str(shapes_model)) == 0 and rknn.build(do_quantization=False) == 0 and rknn.export_rknn(str(path)) == 0
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "netron", "--host", "127.0.0.1", "--port", str(port), str(path)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"BROWSER": "true", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
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
            page = browser.new_page(viewport={"width": 1400, "height": 1000})
            page.add_init_script("localStorage.setItem('consent', String(Date.now()));")
            page.goto(url)
            button = page.locator("#consent-button, #message-button, button:has-text('Accept')")
            if button.count() and button.first.is_visible():
                button.first.click()
            page.wait_for_selector("#canvas .node-item, .node-item", timeout=30000)
            outer = page.content()
            assert "NNBG" in outer
            page.locator("text=NNBG").first.dblclick()   # the node expands into the compiled graph
            page.wait_for_function("document.body.innerHTML.includes('ConvRelu') || document.body.innerHTML.includes('Conv')", timeout=15000)
            page.screenshot(path=str(tmp_path / "netron.png"))
            text = page.content()
            browser.close()
        for name in ("Conv", "InputOperator", "OutputOperator", "Concat"):
            assert name in text, f"{name} is not shown"
        assert (tmp_path / "netron.png").stat().st_size > 5000
    finally:
        server.terminate()
        server.wait(10)
