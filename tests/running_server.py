"""rknn_server as a process of a test."""

import json
import re
import signal
import subprocess
import time
import urllib.request

from library import SERVER


class Server:
    """A running rknn_server; `address` is where it listens."""

    def __init__(self, *options, platform="rk3588", listen="127.0.0.1:0", name="board-1"):
        words = [SERVER, "--platform", platform, "--listen", listen, "--name", name, "--http", "127.0.0.1:0", *options]
        self.process = subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        line = self.process.stdout.readline()
        assert " at " in line, line + self.process.stderr.read()
        self.address = re.search(r" at (\S+?),? ", line)[1]
        self.page = re.search(r"http://\S+/", line)[0]

    def status(self):
        with urllib.request.urlopen(self.page + "status.json", timeout=10) as reply:
            return json.load(reply)

    def wait_for(self, what, seconds=10):
        end = time.monotonic() + seconds
        while not what(self.status()):
            assert time.monotonic() < end, self.status()
            time.sleep(0.05)

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        return self.process.wait(10)
