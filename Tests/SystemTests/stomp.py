"""A STOMP 1.2 client, small: logs in, subscribes, keeps what it hears, sends bytes.

For those who listen on a cluster's topics and speak there without being asked.
"""

import socket
import threading
import time

MOST = 64 << 20
"""Bytes of messages that are kept."""


def frame(command, headers, body=b""):
    lines = [command, *(f"{name}:{value}" for name, value in headers.items()), "", ""]
    return "\n".join(lines).encode() + body + b"\0"


class Client:
    """A connection to a broker. It opens a socket where it is made: see `Host.entered`. Use it in a `with` statement.

    `heard` are the messages that came, as (destination, body).
    """

    def __init__(self, address, port, user, password, timeout=30):
        self._socket = socket.create_connection((address, port), timeout)
        self._waiting = b""
        self.heard, self._heard_byte_count = [], 0
        self._receipts, self._has_receipt = set(), threading.Condition()
        self._problem = None
        self._send("CONNECT", {"accept-version": "1.2", "host": "/", "login": user, "passcode": password,
                               "heart-beat": "0,0"})
        command, headers, body = self._next()
        assert command == "CONNECTED", f"{command} {headers} {body}"
        self._socket.settimeout(None)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def subscribe(self, destination):
        self._receipted("SUBSCRIBE", {"id": destination, "destination": destination, "ack": "auto"})

    def send(self, destination, *bodies):
        """Sends messages, and returns when the broker has them all."""
        for number, body in enumerate(bodies, 1):
            headers = {"destination": destination, "content-length": len(body)}
            if number == len(bodies):
                self._receipted("SEND", headers, body)
            else:
                self._send("SEND", headers, body)

    def _receipted(self, command, headers, body=b""):
        receipt = f"{time.monotonic_ns()}"
        self._send(command, {**headers, "receipt": receipt}, body)
        with self._has_receipt:
            arrived = self._has_receipt.wait_for(lambda: self._problem or receipt in self._receipts, 60)
        assert arrived and not self._problem, f"{command} {headers}: {self._problem or 'no receipt'}"

    def _send(self, command, headers, body=b""):
        self._socket.sendall(frame(command, headers, body))

    def _listen(self):
        try:
            while received := self._next():
                command, headers, body = received
                if command == "MESSAGE" and self._heard_byte_count + len(body) <= MOST:
                    self._heard_byte_count += len(body)
                    self.heard.append((headers["destination"], body))
                with self._has_receipt:
                    if command == "RECEIPT":
                        self._receipts.add(headers["receipt-id"])
                    elif command == "ERROR":
                        self._problem = f"{headers} {body.decode(errors='replace')}"
                    self._has_receipt.notify_all()
        except OSError:
            pass

    def _next(self):
        """The next frame: command, headers, body; None at the end."""
        while True:
            # Line ends between frames are heart-beats.
            self._waiting = self._waiting.lstrip(b"\r\n")
            head, blank, rest = self._waiting.partition(b"\n\n")
            if not blank:
                if not self._read():
                    return None
                continue
            command, *lines = head.decode().split("\n")
            headers = dict(line.split(":", 1) for line in reversed(lines))
            if "content-length" in headers:
                length = int(headers["content-length"])
            else:
                length = rest.find(b"\0")
            if 0 <= length < len(rest):
                self._waiting = rest[length + 1:]
                return command, headers, rest[:length]
            if not self._read():
                return None

    def _read(self):
        received = self._socket.recv(1 << 18)
        self._waiting += received
        return received
