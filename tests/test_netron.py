"""A .rknn opens in the real Netron, served on loopback and shown in headless Chromium."""

import json
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

# What Netron made of the file: every node inside of the one it shows first, with what it reads.
INSIDE = """(() => window.__view__.model.modules[0].nodes[0].type.nodes.map(node => ({
  type: node.type.name, name: node.name,
  inputs: node.inputs.map(argument => argument.value.map(value => ({ role: argument.name, name: value.name, type: value.type.toString(), constant: !!value.initializer }))).flat(),
  outputs: node.outputs.map(argument => argument.value.map(value => value.name)).flat() })))()"""


def find_browser():
    """A browser that starts; Ubuntu's chromium-browser is a script that asks for a snap."""
    for name in ("chromium", "google-chrome", "chromium-browser"):
        path = shutil.which(name)
        if (
            path
            and b"/snap/bin" not in pathlib.Path(path).resolve().read_bytes()[:4096]
            and "/snap/" not in os.path.realpath(path)
        ):
            return path
    pytest.skip("no browser to show Netron in: install chromium (Debian) or google-chrome; a snap is of no use here")


@pytest.mark.parametrize("kind, network", [("rknn", "shapes"), ("rknn", "boxes"), ("packed", "shapes"), ("model", "shapes")])
def test_netron_shows_the_graph(tmp_path, root, monkeypatch, openrknn, kind, network):
    """The finished files of both bundled networks, one with packed weights for the NPU, and the .model of hybrid quantization's step 1."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    pytest.importorskip("netron", reason="netron is not installed")
    chromium = find_browser()
    path = tmp_path / f"{network}.rknn"
    rknn = RKNN()
    rknn.config(target_platform="rk3588", registers=kind == "packed")
    assert rknn.load_onnx(str(root / "examples" / "models" / f"{network}.onnx")) == 0
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
    server = subprocess.Popen(
        [program, "--host", "127.0.0.1", "--port", str(port), path],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ, BROWSER="true"),
    )
    try:
        url = f"http://127.0.0.1:{port}/"
        for _ in range(100):
            try:
                urllib.request.urlopen(url, timeout=1).read()
                break
            except OSError:
                time.sleep(0.1)
        with playwright.sync_playwright() as p:
            browser = p.chromium.launch(
                executable_path=chromium,
                args=[
                    "--no-sandbox",
                    "--disable-gpu",
                    "--disable-background-networking",
                    "--disable-component-update",
                    "--disable-sync",
                    "--no-first-run",
                ],
            )
            context = browser.new_context(viewport={"width": 1400, "height": 1000})
            context.add_cookies([{"name": "consent", "value": "1", "url": url}])  # Netron asks before it shows anything
            page = context.new_page()
            page.goto(url)
            page.wait_for_selector(".graph-node", timeout=30000)
            page.get_by_text("NNBG", exact=True).wait_for()
            page.get_by_text("\u0192").click()  # shows what is inside the node: the compiled graph
            page.locator("svg text", has_text="InputOperator").first.wait_for()
            page.screenshot(path=str(tmp_path / "netron.png"))
            shown = page.content()
            nodes = context.new_cdp_session(page).send("Runtime.evaluate", {"expression": INSIDE, "returnByValue": True})[
                "result"
            ]["value"]
            browser.close()
        for name in ("Conv", "InputOperator", "OutputOperator", "Concat", "1×3×"):
            assert name in shown, f"{name} is not shown"
        assert (tmp_path / "netron.png").stat().st_size > 5000
        if kind == "rknn":
            program = json.loads(openrknn("info", path, "--json").stdout)["programs"][0]
            check_nodes(nodes, program["layers"], {t["name"]: t["type"] + t["shape"] for t in program["tensors"]})
    finally:
        server.terminate()
        server.wait(10)


def check_nodes(nodes, layers, types):
    """Every layer is there under its name, reads and makes the tensors it should, with their types and shapes, and has its weights."""
    shown = {node["name"]: node for node in nodes}
    assert len(nodes) == len(shown) and sum(node["type"] in ("InputOperator", "OutputOperator") for node in nodes) == len(
        nodes
    ) - len(layers)
    for layer in layers:
        node = shown[f"{layer['type']}:{layer['name']}"]
        node["inputs"] = [i for i in node["inputs"] if i["name"]]  # an absent input has no name
        assert [i["name"] for i in node["inputs"] if not i["constant"]] == layer["inputs"] and node["outputs"] == layer["outputs"]
        assert all(i["type"] == types[i["name"]] for i in node["inputs"]), node
        if layer["type"].startswith("Conv"):
            constants = [i for i in node["inputs"] if i["constant"]]
            assert [i["type"].count(",") for i in constants] == [3, 0], node  # weights and bias
            if layer["type"] in ("ConvRelu", "ConvExSwish"):  # of others Netron does not know what their inputs are
                assert [i["role"] for i in constants] == ["weights", "bias"], node
