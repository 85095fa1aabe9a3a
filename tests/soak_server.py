#!/usr/bin/env python3
"""Many clients on one rknn_server for a long time, with everything that can happen to them.

  tests/soak_server.py [--processes 8] [--clients 8] [--seconds 600] [--kill-clients 20] [--kill-server 2] [--proxy 0.25] [--json FILE]

Starts rknn_server and `processes` client processes of `clients` threads each, every one with a connection of its own: over the Unix socket, over
TCP, and `proxy` of them through a proxy that drops, delays, cuts and corrupts bytes. They run three networks on random inputs, measure,
load other models, connect anew, each result compared byte for byte with the simulator's of this process. Every so often a client process is killed
and replaced (`kill-clients` times in all); in the last quarter the server is killed and started again (`kill-server` times).

Ends with 1 when a result is wrong, a call took longer than its timeout allows, a call without a reason failed, the server ended by itself, or
its memory grew: the median of the second quarter against that of the third, by more than 10 % and 16 MiB.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
from faulty_proxy import Proxy, with_flipped_bit

TIMEOUT_S = {False: 60, True: 5}  # of a call; True: of clients whose connections have faults
LATENESS_S = 20  # of a call that ends at its timeout, on a machine that is busy
INPUTS = 6  # different inputs per network


# --- a client process


class Client(threading.Thread):
    """One connection and its mixed work until `end`; counts what happened."""

    def __init__(self, name, folder, is_faulty, end):
        super().__init__(name=name)
        self.folder, self.is_faulty, self.end = folder, is_faulty, end
        self.chance, self.counts, self.slowest, self.problems = random.Random(name), collections.Counter(), 0.0, []
        self.api = None

    def timed(self, what, call):
        """The call's value; None when it failed, which only faults and a server that was killed excuse."""
        begin = time.monotonic()
        try:
            value = call()
        except Exception as error:
            value, why = None, str(error)
        else:
            why = "" if value is not None else "failed"
        self.slowest = max(self.slowest, time.monotonic() - begin)
        self.counts[what if value is not None else what + " failed"] += 1
        if value is None:
            self.drop()
            if not self.is_faulty and not self.is_excused(begin):
                self.problems.append(f"{what}: {why}")
        return value

    def is_excused(self, begin):
        """Whether the server was down during the call."""
        time.sleep(0.2)
        return any(float(line) > begin - 5 for line in open(f"{self.folder}/kills", encoding="utf-8"))

    def drop(self):
        if self.api is not None:
            self.api.release()
        self.api = None

    def connect(self):
        from rknn.api import RKNN

        self.drop()
        self.network = self.chance.choice(NETWORKS)
        kind = "faulty" if self.is_faulty else self.chance.choice(["unix", "tcp"])
        with open(f"{self.folder}/addresses", encoding="utf-8") as file:
            address = json.load(file)[kind]
        api = RKNN()
        assert api.load_rknn(f"{self.folder}/{self.network}.rknn") == 0
        ready = self.timed("connect", lambda: api.init_runtime("rk3588", device_id=address, eval_mem=True) == 0 or None)
        if ready:
            self.api, self.data = api, np.load(f"{self.folder}/{self.network}.npz")
        else:
            api.release()
            time.sleep(0.1)

    def work(self):
        kind = self.chance.random()
        if self.api is None or kind < 0.02:
            return self.connect()
        if kind < 0.06:
            return self.timed("measure", lambda: self.api.eval_memory(is_print=False))
        if kind < 0.08:
            return self.timed("perf", lambda: self.api.eval_perf(is_print=False))
        i = self.chance.randrange(INPUTS)
        result = self.timed("run", lambda: self.api.inference([self.data[f"x{i}"]], data_format="nchw"))
        if result is not None and any(r.tobytes() != self.data[f"y{i}_{k}"].tobytes() for k, r in enumerate(result)):
            self.counts["wrong"] += 1

    def run(self):
        while time.time() < self.end:
            self.work()
        self.drop()


def client_process(options):
    clients = []
    faulty = options.client < options.proxy * options.processes
    os.environ["ORKNN_DEVICE_TIMEOUT_MS"] = str(TIMEOUT_S[faulty] * 1000)
    for i in range(options.clients):
        clients.append(Client(f"{options.client}-{i}-{os.getpid()}", options.folder, faulty, options.end))
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    total = sum((client.counts for client in clients), collections.Counter())
    problems = [problem for client in clients for problem in client.problems]
    slowest = max(client.slowest for client in clients)
    if slowest > TIMEOUT_S[faulty] + LATENESS_S:
        problems.append(f"a call took {slowest:.1f} s, more than its timeout of {TIMEOUT_S[faulty]} s allows")
    print(json.dumps(dict(counts=total, slowest=slowest, problems=problems)))


# --- around the clients

NETWORKS = ["small", "chain", "large"]


def make_networks(folder):
    """Three .rknn files, their inputs and what the simulator of this process makes of them."""
    import onnx
    from onnx import TensorProto, helper
    from rknn.api import RKNN

    numbers = np.random.default_rng(1)
    for name, shape, steps in (("small", [1, 8], 2), ("chain", [1, 16, 24, 24], 12), ("large", [1, 3, 128, 128], 2)):
        info = lambda tensor: helper.make_tensor_value_info(tensor, TensorProto.FLOAT, shape)
        nodes = [helper.make_node("Sigmoid" if i % 2 else "Tanh", [f"t{i}"], [f"t{i + 1}"]) for i in range(steps)]
        graph = helper.make_graph(nodes, name, [info("t0")], [info(f"t{steps}")])
        path = f"{folder}/{name}.onnx"
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
        api = RKNN()
        api.config(target_platform="rk3588", float_dtype="float32")
        assert api.load_onnx(path) == 0 and api.build(do_quantization=False) == 0 and api.init_runtime() == 0
        assert api.export_rknn(f"{folder}/{name}.rknn") == 0
        values = {}
        for i in range(INPUTS):
            values[f"x{i}"] = numbers.standard_normal(shape, np.float32)
            for k, y in enumerate(api.inference([values[f"x{i}"]], data_format="nchw")):
                values[f"y{i}_{k}"] = y
        np.savez(f"{folder}/{name}.npz", **values)
        api.release()


class Faults:
    """Now and then drops, delays, cuts or corrupts what passes."""

    def __init__(self):
        self.chance = random.Random(1)

    def __call__(self, data):
        kind = self.chance.random()
        if kind < 0.01:
            return None
        if kind < 0.02:
            return b""
        if kind < 0.03:
            return with_flipped_bit(data, self.chance)
        if kind < 0.1:
            time.sleep(self.chance.random() * 0.05)
        return data


class Server:
    def __init__(self, folder, clients):
        from library import SERVER

        self.folder, self.clients, self.tcp = folder, clients, "127.0.0.1:0"
        self.program = SERVER
        self.start()

    def start(self):
        listen = ["--listen", f"unix:{self.folder}/s.sock", "--listen", self.tcp, "--max-clients", str(2 * self.clients)]
        words = [self.program, "--platform", "rk3588", "--name", "soak", "--no-announce", *listen]
        self.process = subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        line = self.process.stdout.readline()
        self.tcp = re.search(r"(127\.0\.0\.1:\d+)", line)[1]

    def kill(self):
        self.note()
        self.process.kill()
        self.process.wait()
        self.start()
        self.note()

    def note(self):
        with open(f"{self.folder}/kills", "a", encoding="utf-8") as file:
            file.write(f"{time.monotonic()}\n")

    def memory_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


class Soak:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        make_networks(folder)
        open(f"{folder}/kills", "w").close()
        self.server = Server(folder, options.processes * options.clients)
        proxy = Proxy(self.server.tcp, Faults())
        with open(f"{folder}/addresses", "w", encoding="utf-8") as file:
            json.dump(dict(unix=f"unix:{folder}/s.sock", tcp=self.server.tcp, faulty=proxy.address), file)
        self.begin = time.time()
        self.end = self.begin + options.seconds
        self.processes = {i: self.client(i) for i in range(options.processes)}
        self.memory, self.killed, self.crashed = [], 0, []
        self.chance = random.Random(2)

    def client(self, index):
        words = [sys.executable, __file__, "--client", index, "--folder", self.folder, "--end", self.end]
        words += ["--processes", self.options.processes, "--clients", self.options.clients, "--proxy", self.options.proxy]
        return subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def at(self):
        """How much of the time is over, 0 to 1."""
        return (time.time() - self.begin) / self.options.seconds

    def kill_client(self):
        index = self.chance.randrange(self.options.processes)
        self.processes[index].send_signal(signal.SIGKILL)
        self.processes[index].wait()
        self.processes[index] = self.client(index)
        self.killed += 1

    def run(self):
        clients, servers = self.options.kill_clients, self.options.kill_server
        restarted = 0
        while self.at() < 1:
            time.sleep(min(0.5, self.options.seconds / 100))
            if self.server.process.poll() is not None:
                self.crashed.append(self.server.process.returncode)
                self.server.kill()
            if self.at() < 0.75:
                self.memory.append((self.at(), self.server.memory_mb()))
            if self.killed < int(clients * self.at()):
                self.kill_client()
            if restarted < servers and self.at() > 0.75 + 0.2 * restarted / servers:
                self.server.kill()
                restarted += 1
        return [self.report_of(process) for process in self.processes.values()]

    def report_of(self, process):
        try:
            out, _ = process.communicate(timeout=2 * max(TIMEOUT_S.values()))
            return json.loads(out) if process.returncode == 0 else dict(problems=[f"a client ended with {process.returncode}"])
        except subprocess.TimeoutExpired:
            process.kill()
            return dict(problems=["a client hangs"])

    def median_mb(self, quarter):
        part = [mb for at, mb in self.memory if quarter / 4 <= at < (quarter + 1) / 4]
        return statistics.median(part) if part else 0.0


def judge(soak, reports):
    counts = sum((collections.Counter(report.get("counts", {})) for report in reports), collections.Counter())
    problems = [problem for report in reports for problem in report["problems"]]
    slowest = max(report.get("slowest", 0.0) for report in reports)
    before, after = soak.median_mb(1), soak.median_mb(2)
    # Below a minute the quarters compare a server whose clients still start with one that they use.
    grew = soak.options.seconds >= 60 and after > before * 1.1 and after > before + 16
    verdict = dict(
        seconds=soak.options.seconds,
        clients=soak.options.processes * soak.options.clients,
        counts=dict(sorted(counts.items())),
        wrong=counts["wrong"],
        failed_without_reason=len(problems),
        examples=problems[:5],
        slowest_call_s=round(slowest, 2),
        killed_client_processes=soak.killed,
        server_crashes=soak.crashed,
        memory_mb=[round(before, 1), round(after, 1)],
    )
    bad = counts["wrong"] or problems or soak.crashed or grew or counts["run"] == 0
    return verdict, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--clients", type=int, default=8, help="of each process")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--kill-clients", type=int, default=20)
    parser.add_argument("--kill-server", type=int, default=2)
    parser.add_argument("--proxy", type=float, default=0.25, help="share of the clients whose connections have faults")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--client", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--end", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["ORKNN_REQUIRE_DEVICE"] = "1"
    if options.client is not None:
        return client_process(options)
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(options, folder)
        reports = soak.run()
        verdict, bad = judge(soak, reports)
        soak.server.process.terminate()
        if soak.server.process.wait(30) != 0:
            bad = verdict["server_crashes"] = ["it did not end when it was asked to"]
    text = json.dumps(verdict, indent=2)
    print(text)
    if options.json:
        pathlib.Path(options.json).write_text(text + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
