"""rknn_server and its clients: the same results as in one process, and no wrong one whatever happens to connections."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import numpy as np
import pytest
from conftest import picture
from faulty_proxy import Proxy, with_flipped_bit
from library import SERVER
from rknn.api import RKNN
from rknnlite.api import RKNNLite
from running_server import Server

STARS = "*" * 25


@pytest.fixture
def devices(tmp_path, monkeypatch):
    """devices(...) starts a server; its folder of announcements is this test's alone."""
    folder = tmp_path / "devices"
    monkeypatch.setenv("ORKNN_DEVICE_DIR", str(folder))
    started = []

    def start(*options, **more):
        started.append(Server(*options, **more))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            assert server.kill(signal.SIGTERM) == 0


@pytest.fixture
def model(build, conv_model, tmp_path):
    """(path of a .rknn, its result for picture())"""
    made = build(conv_model, float_dtype="float16")
    path = str(tmp_path / "m.rknn")
    assert made.export_rknn(path) == 0
    return path, made.inference([picture()])[0]


def connected(path, *args, **options):
    api = RKNN()
    assert api.load_rknn(path) == 0
    assert api.init_runtime(*args, **options) == 0
    return api


def test_a_device_gives_the_results_of_the_simulator(devices, model, capfd):
    server = devices()
    assert re.search(rb"rknn_server version: \d+\.\d+\.\d+\0", pathlib.Path(SERVER).read_bytes()), "people look for it there"
    path, expected = model
    for device_id in (None, "board-1", server.address):
        api = connected(path, "rk3588", device_id=device_id, perf_debug=True, eval_mem=True)
        err = capfd.readouterr().err
        assert f"Connected to board-1 at {server.address}" in err and "simulated in this process" not in err
        assert api.inference([picture()])[0].tobytes() == expected.tobytes()
        here = connected(path, perf_debug=True, eval_mem=True)
        assert api.eval_perf(is_print=False) == here.eval_perf(is_print=False)
        assert api.eval_memory(is_print=False) == here.eval_memory(is_print=False)
        assert "DRV: rknn_server: " in api.get_sdk_version() and "(simulator)" not in api.get_sdk_version()
        api.release(), here.release()
    assert server.status()["runs"] == 3 and len(server.status()["models"]) == 1
    lite = RKNNLite()
    assert lite.load_rknn(path) == 0 and lite.init_runtime(target="rk3588", core_mask=RKNNLite.NPU_CORE_0_1_2) == 0
    assert lite.inference([picture()])[0].tobytes() == expected.tobytes()
    lite.release()
    assert server.status()["runs"] == 4


def test_unix_socket_and_models_on_the_board(devices, model, tmp_path):
    path, expected = model
    server = devices("--models", tmp_path, listen=f"unix:{tmp_path}/s.sock")
    api = RKNN()
    assert api.load_rknn("m.rknn", load_model_in_npu=True) == 0
    assert api.init_runtime("rk3588", device_id="board-1") == 0
    assert api.inference([picture()])[0].tobytes() == expected.tobytes()
    assert server.status()["runs"] == 1
    api.release()
    assert server.kill(signal.SIGTERM) == 0 and not os.path.exists(tmp_path / "s.sock")


def test_the_status_says_who_runs_a_model(devices, model, monkeypatch):
    monkeypatch.setenv("ORKNN_ENGINE", "registers")
    server = devices()
    monkeypatch.delenv("ORKNN_ENGINE")
    connected(model[0], "rk3588").release()
    assert [m["engine"] for m in server.status()["models"]] == ["registers"]
    with urllib.request.urlopen(server.page, timeout=10) as reply:
        page = reply.read().decode()
    assert "<td>the chip model (registers)<td>" in page and "simulat" not in page


def test_lists_of_devices(devices, openrknn, capsys, monkeypatch, tmp_path):
    devices(name="515e9b401c060c0b")
    devices("--mode", "ntb", name="TD018080000000225", platform="rk1808")
    api = RKNN()
    capsys.readouterr()
    assert api.list_devices() == (["515e9b401c060c0b"], ["TD018080000000225"])
    block = f"{STARS}\nall device(s) with adb mode:\n515e9b401c060c0b\n{STARS}\n{STARS}\nall device(s) with ntb mode:\nTD018080000000225\n{STARS}\n"
    assert capsys.readouterr().out == block
    assert openrknn("devices").stdout == block
    assert json.loads(openrknn("devices", "--json").stdout)[1]["platform"] == "rk1808"


@pytest.fixture
def adb(tmp_path, monkeypatch):
    """adb(serial=port, ...): an adb that knows these devices and forwards to the ports; the real one does the same. Returns the file
    that lists what was forwarded."""
    (tmp_path / "bin").mkdir()
    forwards = tmp_path / "forwards"
    forwards.write_text("OTHER tcp:9 tcp:8088\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")

    def install(**ports):
        program = tmp_path / "bin" / "adb"
        listed = "".join(f"{serial}\\tdevice\\n" for serial in ports)
        cases = "".join(
            f'"-s {serial} forward tcp:0 tcp:8088") echo {port}; echo {serial} tcp:{port} tcp:8088 >> {forwards} ;;\n'
            for serial, port in ports.items()
        )
        program.write_text(
            f"""#!/bin/sh
case "$*" in
devices) printf 'List of devices attached\\n{listed}lost\\toffline\\n' ;;
"forward --list") cat {forwards} ;;
{cases}*) exit 1 ;;
esac
"""
        )
        program.chmod(0o755)
        return forwards

    return install


@pytest.fixture
def phone():
    """The port that leads to a device without rknn_server: adb accepts a connection and closes it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def close_all():
        while True:
            try:
                listener.accept()[0].close()
            except OSError:
                return

    thread = threading.Thread(target=close_all)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def port_of(server):
    return server.address.rpartition(":")[2]


def test_adb_serials_are_forwarded(devices, model, adb, capfd):
    server = devices("--no-announce")
    forwards = adb(SERIAL7=port_of(server))
    forwards.write_text("OTHER tcp:9 tcp:8088\nSERIAL7 tcp:9 tcp:5555\n")
    for count in (1, 2):
        api = connected(model[0], "rk3588", device_id="SERIAL7")
        assert api.inference([picture()])[0].tobytes() == model[1].tobytes()
        assert api.list_devices() == (["SERIAL7"], [])
        assert server.status()["runs"] == count
        api.release()
    assert len(forwards.read_text().splitlines()) == 3, "one port serves all connections"


def test_a_phone_is_no_board(devices, model, adb, phone, monkeypatch, capfd):
    """adb devices without rknn_server are none of the chip's: alone the chip is simulated, beside a board the board is meant."""
    adb(PHONE=phone)
    for device_id in (None, "PHONE"):
        api = connected(model[0], "rk3588", device_id=device_id)
        err = capfd.readouterr().err
        assert len(re.findall("^W .*simulated in this process", err, re.M)) == 1
        assert f"the adb device 'PHONE' has no rknn_server: the connection to 127.0.0.1:{phone} broke" in err or (
            f"the adb device 'PHONE' has no rknn_server: the rknn_server at 127.0.0.1:{phone} has closed the connection" in err
        )
        assert api.inference([picture()])[0].tobytes() == model[1].tobytes()
        api.release()
    board = devices(name="board")
    other = devices("--no-announce", platform="rk3566")
    adb(PHONE=phone, OTHER_CHIP=port_of(other))
    api = connected(model[0], "rk3588")
    assert f"Connected to board at {board.address}" in capfd.readouterr().err
    second = devices("--no-announce")
    adb(PHONE=phone, SECOND=port_of(second))
    assert api.init_runtime("rk3588") == -1 and "one of board, SECOND" in capfd.readouterr().err
    monkeypatch.setenv("ORKNN_DEVICE", "PHONE")
    assert api.init_runtime("rk3588") == -1
    assert (
        "'PHONE', which ORKNN_DEVICE names, is not in reach: the adb device 'PHONE' has no rknn_server" in capfd.readouterr().err
    )
    api.release()


def test_what_listens_and_is_no_server(model, phone, capfd):
    api = RKNN()
    assert api.load_rknn(model[0]) == 0 and api.init_runtime("rk3588", device_id=f"127.0.0.1:{phone}") == -1
    err = capfd.readouterr().err
    assert f"127.0.0.1:{phone}" in err and "Hint: " in err
    api.release()


def test_the_environment_names_the_device_of_every_face(devices, model, monkeypatch, capfd):
    """ORKNN_DEVICE holds for RKNNLite without a target as for C programs; what it names must be in reach."""
    server = devices("--no-announce")
    path, expected = model
    monkeypatch.setenv("ORKNN_DEVICE", server.address)
    lite = RKNNLite()
    assert lite.load_rknn(path) == 0 and lite.init_runtime(core_mask=RKNNLite.NPU_CORE_0) == 0
    assert lite.inference([picture()])[0].tobytes() == expected.tobytes() and server.status()["runs"] == 1
    version = lite.get_sdk_version()
    assert "  DRV: " in version and "(rknn_server)" in version and "simulator" not in version
    api = connected(path)
    assert server.status()["runs"] == 1 and "W init_runtime: ORKNN_DEVICE and" in capfd.readouterr().err
    for place in ("127.0.0.1:1", "nobody"):
        monkeypatch.setenv("ORKNN_DEVICE", place)
        for call in (lite.init_runtime, lambda: lite.init_runtime("rk3588"), lambda: api.init_runtime("rk3588")):
            assert call() == -1
            err = capfd.readouterr().err
            assert "Connect to Device Failure (-1): " in err and f"'{place}', which ORKNN_DEVICE names, is not in reach" in err
    monkeypatch.delenv("ORKNN_DEVICE")
    monkeypatch.setenv("ORKNN_REQUIRE_DEVICE", "1")
    assert lite.init_runtime() == -1 and "Connect to Device Failure (-1): there is no rk3588 in reach" in capfd.readouterr().err
    devices(listen="127.0.0.1:0", name="only")
    assert lite.init_runtime() == 0 and "(rknn_server)" in lite.get_sdk_version()
    lite.release(), api.release()


def test_several_devices_need_a_name(devices, model, capfd):
    devices(name="one"), devices(name="two"), devices(name="other", platform="rk3566")
    api = RKNN()
    assert api.load_rknn(model[0]) == 0 and api.init_runtime("rk3588") == -1
    assert "one of one, two" in capfd.readouterr().err
    assert api.init_runtime("rk3588", device_id="two") == 0
    assert api.init_runtime("rk3588", device_id="other") == -1
    assert "cannot run the model; expected a rk3588, found rk3566" in capfd.readouterr().err
    api.release()


def test_the_chip_itself_comes_before_its_family(devices, build, conv_model, capfd):
    model = build(conv_model, target_platform="rk3566")
    family, own = devices(name="family", platform="rk3568"), devices(name="own", platform="rk3566")
    assert model.init_runtime("rk3566") == 0
    assert len(own.status()["clients"]) == 1 and not family.status()["clients"]
    assert own.kill(signal.SIGTERM) == 0
    assert model.init_runtime("rk3566") == 0 and len(family.status()["clients"]) == 1
    model.release()


def test_a_key_is_needed_where_others_can_come(devices, model, tmp_path, monkeypatch, capfd):
    done = subprocess.run([SERVER, "--platform", "rk3588", "--listen", "0.0.0.0:0"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "needs a key" in done.stderr
    key, other = tmp_path / "key", tmp_path / "other"
    for file in (key, other):
        assert subprocess.run([SERVER, "--make-key", file], timeout=30).returncode == 0 and file.stat().st_mode & 0o777 == 0o600
    server = devices("--key", key, listen="0.0.0.0:0")
    place = "127.0.0.1:" + server.address.rpartition(":")[2]
    api = RKNN()
    assert api.load_rknn(model[0]) == 0
    assert api.init_runtime("rk3588", device_id=place) == -1 and "wants a key" in capfd.readouterr().err
    monkeypatch.setenv("ORKNN_DEVICE_KEY", str(other))
    assert api.init_runtime("rk3588", device_id=place) == -1 and "is the key in ORKNN_DEVICE_KEY" in capfd.readouterr().err
    monkeypatch.setenv("ORKNN_DEVICE_KEY", str(key))
    assert api.init_runtime("rk3588", device_id=place) == 0
    assert api.inference([picture()])[0].tobytes() == model[1].tobytes()
    api.release()


def test_the_server_dies_and_comes_back(devices, model, monkeypatch, capfd):
    server = devices()
    api = connected(model[0], "rk3588")
    api.inference([picture()])
    server.kill()
    begin = time.monotonic()
    with pytest.raises(ValueError):
        api.inference([picture()])
    with pytest.raises(ValueError):
        api.inference([picture()])
    assert time.monotonic() - begin < 10
    assert api.list_devices() == ([], [])  # its announcement counts no more
    devices(listen=server.address)
    assert api.inference([picture()])[0].tobytes() == model[1].tobytes()
    api.release()


CLIENT = """
import sys
import numpy as np
from rknn.api import RKNN
api = RKNN()
assert api.load_rknn(sys.argv[1]) == 0 and api.init_runtime("rk3588", device_id=sys.argv[2]) == 0
x = np.random.default_rng(5).integers(0, 256, (1, 8, 6, 3)).astype(np.uint8)
first = api.inference([x], data_format=["nhwc"])[0].tobytes()
print("ready", flush=True)
count = int(sys.argv[3])
while count:
    assert api.inference([x], data_format=["nhwc"])[0].tobytes() == first
    count -= 1
"""


def client(path, address, count=-1):
    process = subprocess.Popen(
        [sys.executable, "-c", CLIENT, path, address, str(count)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    return process


def test_clients_that_die_leave_nothing(devices, model):
    server = devices()
    for how in (signal.SIGKILL, signal.SIGINT):
        clients = [client(model[0], server.address) for _ in range(3)]
        for process in clients:
            assert process.stdout.readline() == "ready\n", process.stderr.read()
        assert len(server.status()["clients"]) == 3
        for process in clients:
            process.send_signal(how)
            assert process.wait(10) != 0
        server.wait_for(lambda status: status["clients"] == [])
    api = connected(model[0], "rk3588")
    assert api.inference([picture()])[0].tobytes() == model[1].tobytes()
    api.release()


def test_ctrl_c_ends_a_wait(devices, model):
    """A server that is stopped never replies; the client ends at once all the same, long before its timeout."""
    server = devices()
    process = client(model[0], server.address)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    assert process.wait(10) != 0 and time.monotonic() - begin < 3
    assert "KeyboardInterrupt" in process.stderr.read()
    server.process.send_signal(signal.SIGCONT)
    server.wait_for(lambda status: status["clients"] == [])


def test_ctrl_c_frees_the_board(devices, make_onnx, tmp_path, build):
    """The run of a client that was interrupted ends between two tasks, long before its end."""
    steps, shape = 3000, [1, 1 << 22]
    nodes = [("Tanh" if i % 2 else "Sigmoid", [f"t{i}"], [f"t{i + 1}"], {}) for i in range(steps)]
    path = make_onnx(nodes, {"t0": ("float32", shape)}, {f"t{steps}": ("float32", shape)})
    assert build(path, optimization_level=0).export_rknn(str(tmp_path / "long.rknn")) == 0
    server = devices()
    script = """
import sys
import numpy as np
from rknn.api import RKNN
api = RKNN()
assert api.load_rknn(sys.argv[1]) == 0 and api.init_runtime("rk3588", device_id=sys.argv[2]) == 0
print("ready", flush=True)
api.inference([np.zeros((1, 1 << 22), np.float32)])
"""
    words = [sys.executable, "-c", script, str(tmp_path / "long.rknn"), server.address]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    time.sleep(0.5)
    assert server.status()["runs"] == 0
    process.send_signal(signal.SIGINT)
    process.wait(10)
    assert "KeyboardInterrupt" in process.stderr.read()
    server.wait_for(lambda status: status["stopped"] == 1 and status["clients"] == [])


def test_accuracy_analysis_on_the_device(devices, conv_model, tmp_path, capsys):
    """The table and the layers' files are those of the chip simulated here; the runs happened on the device."""
    np.save(tmp_path / "x.npy", picture()[0])
    (tmp_path / "list.txt").write_text("x.npy\n")

    def analysed(folder, *device):
        api = RKNN()
        api.config(target_platform="rk3588")
        assert api.load_onnx(conv_model) == 0 and api.build(do_quantization=True, dataset=str(tmp_path / "list.txt")) == 0
        capsys.readouterr()
        assert api.accuracy_analysis([str(tmp_path / "x.npy")], str(tmp_path / folder), "rk3588", *device) == 0
        api.release()
        said = capsys.readouterr()
        files = {p.relative_to(tmp_path / folder): p.read_bytes() for p in (tmp_path / folder).rglob("*.txt")}
        return said.out, said.err, files

    table, log, files = analysed("here")
    assert "simulated in this process" in log
    server, _ = devices(), devices(name="board-2")
    there, log, same = analysed("there", "board-1")
    assert there == table and same == files and any(p.parts[0] == "runtime" for p in same)
    assert server.address in log and server.status()["runs"] >= 2


def test_layer_dumps_of_a_client(devices, model, tmp_path):
    """What the client's environment asks for is written by the client: the same files wherever the layers are computed."""
    server = devices()
    found = {}
    for place, device in (("here", ""), ("there", server.address)):
        (tmp_path / place).mkdir()
        script = CLIENT.replace('init_runtime("rk3588", device_id=sys.argv[2])', "init_runtime()") if not device else CLIENT
        environment = {**os.environ, "NN_LAYER_DUMP": "1", "RKNN_LOG_LEVEL": "5", "RKNN_DUMP_DIR": str(tmp_path / place)}
        words = [sys.executable, "-c", script, model[0], device, "0"]
        subprocess.run(words, env=environment, cwd=tmp_path / place, check=True, capture_output=True, timeout=120)
        found[place] = {file.name: file.read_bytes() for file in (tmp_path / place).iterdir()}
    assert found["here"] == found["there"] and {os.path.splitext(name)[1] for name in found["here"]} == {".npy", ".tensor"}
    assert server.status()["runs"] == 1


def test_cores_and_logs_of_the_server(devices, model, tmp_path, monkeypatch):
    """RKNN_SERVER_LOGLEVEL says who comes and goes; without it there is nothing to read."""
    monkeypatch.setenv("RKNN_SERVER_LOGLEVEL", "2")
    monkeypatch.setenv("RKNN_LOG_LEVEL", "2")
    server = devices()
    lite = RKNNLite()
    assert lite.load_rknn(model[0]) == 0 and lite.init_runtime(target="rk3588", core_mask=RKNNLite.NPU_CORE_2) == 0
    assert lite.inference([picture()])[0].tobytes() == model[1].tobytes()
    lite.release()
    server.wait_for(lambda status: status["clients"] == [])
    server.kill(signal.SIGTERM)
    log = server.process.stderr.read()
    assert re.search(r"^I rknn_server: \[\d\d:\d\d:\d\d\.\d{3}\] \S+ \[\d+\] uses ", log, re.M) and " is gone" in log
    of_the_runtime = [line for line in log.splitlines() if " RKNN" in line]
    assert of_the_runtime and all(re.match(r"[DIEW] RKNN: \[[\d:.]+\] ", line) for line in of_the_runtime)
    monkeypatch.setenv("RKNN_SERVER_LOGLEVEL", "0")
    quiet = devices()
    connected(model[0], "rk3588").release()
    quiet.kill(signal.SIGTERM)
    assert quiet.process.stderr.read() == ""


def test_a_short_soak(tmp_path):
    """tests/soak_server.py for ten seconds: clients killed, the server killed, a proxy with faults."""
    program = pathlib.Path(__file__).parent / "soak_server.py"
    words = ["--processes", "4", "--clients", "3", "--seconds", "12", "--kill-clients", "2", "--kill-server", "1"]
    done = subprocess.run([sys.executable, program, *words], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["wrong"] == 0 and verdict["counts"]["run"] > 0


def test_many_clients(devices, model):
    server = devices()
    clients = [client(model[0], server.address, 30) for _ in range(8)]
    for process in clients:
        assert process.wait(120) == 0, process.stderr.read()
    status = server.status()
    assert status["runs"] == 8 * 31 and len(status["models"]) == 1 and status["refused"] == 0


@pytest.mark.parametrize("kind", ["corrupts", "cuts", "delays", "drops"])
def test_faults_of_the_network(devices, model, monkeypatch, kind, capfd):
    """Every call ends within its timeout, with the right result or an error."""
    server = devices()
    chance = random.Random(kind)

    def fault(data):
        if kind == "delays":
            time.sleep(chance.random() * 0.02)
        if chance.random() > 0.15 or kind == "delays":
            return data
        if kind == "cuts":
            return None
        if kind == "drops":
            return b""
        return with_flipped_bit(data, chance)

    monkeypatch.setenv("ORKNN_DEVICE_TIMEOUT_MS", "500")
    monkeypatch.setenv("ORKNN_REQUIRE_DEVICE", "1")
    proxy = Proxy(server.address, fault)
    path, expected = model
    right = wrong = errors = 0
    api = RKNN()
    assert api.load_rknn(path) == 0
    begin = time.monotonic()
    ready = False
    for _ in range(25):
        if not ready:
            ready = api.init_runtime("rk3588", device_id=proxy.address) == 0
            continue
        try:
            same = api.inference([picture()])[0].tobytes() == expected.tobytes()
            right, wrong = right + same, wrong + (not same)
        except ValueError:
            errors += 1
    assert wrong == 0 and right > 0 and time.monotonic() - begin < 60
    assert errors == 0 or kind != "delays"
    api.release()
    proxy.listener.close()
    direct = connected(path, "rk3588")  # the server goes on
    assert direct.inference([picture()])[0].tobytes() == expected.tobytes()
    direct.release()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_unit_of_systemd_is_valid(tmp_path):
    unit = pathlib.Path(__file__).parent.parent / "tools" / "rknn_server" / "rknn_server.service"
    (tmp_path / unit.name).write_text(unit.read_text().replace("/usr/bin/rknn_server", str(SERVER)))
    done = subprocess.run(["systemd-analyze", "verify", tmp_path / unit.name], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""


def test_options_that_cannot_be(tmp_path):
    run = lambda *words: subprocess.run([SERVER, *map(str, words)], capture_output=True, text=True, timeout=30)
    for words, text in [
        ((), "--platform is missing"),
        (("--platform", "rk9999"), "rk9999"),
        (("--platform", "rk3588", "--listen", "nowhere:x"), "invalid address"),
        (("--platform", "rk3588", "--key", tmp_path / "none"), "none"),
        (("--platform", "rk3588", "--name", "a/b", "--listen", "127.0.0.1:0"), "invalid name"),
        (("--platform", "rk3588", "--listen", "127.0.0.1:0", "--http", "0.0.0.0:0"), "no key"),
    ]:
        done = run(*words)
        assert done.returncode == 1 and text in done.stderr, done.stderr
    assert run("--version").stdout.startswith("rknn_server version: ")


def test_large_tensors_through_shared_memory(devices, make_onnx, tmp_path, build):
    """Beyond 64 KiB inputs and results lie in memory that both processes see."""
    path = make_onnx([("Sigmoid", ["x"], ["y"], {})], {"x": ("float32", [1, 3, 256, 256])}, {"y": ("float32", [1, 3, 256, 256])})
    made = build(path)
    x = np.random.default_rng(1).random((1, 3, 256, 256), np.float32)
    expected = made.inference([x], data_format="nchw")[0]
    assert made.export_rknn(str(tmp_path / "large.rknn")) == 0
    devices(listen=f"unix:{tmp_path}/s.sock")
    api = connected(str(tmp_path / "large.rknn"), "rk3588")
    for _ in range(3):
        assert api.inference([x], data_format="nchw")[0].tobytes() == expected.tobytes()
    api.release()
