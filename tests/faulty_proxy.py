"""A proxy between clients and rknn_server whose connections have faults."""

import socket
import threading


class Proxy:
    """`fault(data)` returns what to pass on, None to cut the connection."""

    def __init__(self, address, fault):
        host, _, port = address.rpartition(":")
        self.target, self.fault = (host, int(port)), fault
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:  # closed
                return
            try:
                far = socket.create_connection(self.target)
            except OSError:  # the server is away for now
                near.close()
                continue
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(a, b), daemon=True).start()

    def _pump(self, a, b):
        try:
            while (data := a.recv(65536)) and (data := self.fault(data)) is not None:
                b.sendall(data)
        except OSError:
            pass
        for end in (a, b):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def with_flipped_bit(data, chance):
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
