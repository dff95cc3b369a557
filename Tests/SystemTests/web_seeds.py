"""An HTTP server that gives the files of a torrent as web seeds do (BEP 19), honestly or not."""

import http.server
import pathlib
import re
import socket
import threading
import time
import urllib.parse


class WebSeed:
    """Serves a directory on an address of its own; use it in a `with`. `asked` holds (path, Range header)."""

    def __init__(self, directory, answer=None, host="127.0.0.2"):
        self.directory, self.asked, self.sent = pathlib.Path(directory), [], 0
        seed, answer = self, answer or honest

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                seed.asked.append((self.path, self.headers.get("Range")))
                try:
                    answer(seed, self)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads, block_on_close = True, False

            def handle_error(self, *_):
                pass  # A client that hangs up is what many tests want.

        self._server = Server((host, 0), Handler)
        self.url = "http://{}:{}/".format(*self._server.server_address[:2])

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def part(self, handler):
        """The bytes that are asked for, and their place: (first, bytes, length of the file); None if there is no such file."""
        path = self.directory / urllib.parse.unquote(handler.path).lstrip("/")
        if not path.is_file():
            return None
        data = path.read_bytes()
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", handler.headers.get("Range") or "bytes=0-")
        first, last = int(match[1]), int(match[2] or len(data) - 1)
        return first, data[first:last + 1], len(data)


def reply(handler, status, data=b"", length=None, headers={}):
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(data) if length is None else length))
    handler.end_headers()
    handler.wfile.write(data)


def honest(seed, handler, change=lambda data: data):
    part = seed.part(handler)
    if part is None:
        return reply(handler, 404)
    first, data, size = part
    reply(handler, 206, change(data), headers={"Content-Range": f"bytes {first}-{first + len(data) - 1}/{size}"})


# Those that lie

def corrupt(seed, handler):
    """The right length and the wrong bytes."""
    honest(seed, handler, lambda data: bytes(byte ^ 0x55 for byte in data))


def too_short(seed, handler):
    """Half of what it promises, and then the end."""
    first, data, size = seed.part(handler)
    handler.close_connection = True
    reply(handler, 206, data[:len(data) // 2], len(data),
          {"Content-Range": f"bytes {first}-{first + len(data) - 1}/{size}"})


def too_long(seed, handler):
    """More than it was asked for, which it says."""
    first, data, size = seed.part(handler)
    reply(handler, 206, data + bytes(100_000),
          headers={"Content-Range": f"bytes {first}-{first + len(data) + 99_999}/{size + 100_000}"})


def endless(seed, handler):
    """A body without an end, in good order."""
    handler.send_response(206)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    block = b"10000\r\n" + bytes(0x10000) + b"\r\n"
    while True:
        handler.wfile.write(block)
        seed.sent += 0x10000


def never_begins(seed, handler):
    """An answer that does not come."""
    time.sleep(3600)


def drips(seed, handler):
    """A byte a second."""
    _, data, _ = seed.part(handler)
    handler.send_response(206)
    handler.send_header("Content-Length", str(len(data)))
    handler.end_headers()
    for byte in data:
        handler.wfile.write(bytes([byte]))
        time.sleep(1)


def whole_file(seed, handler):
    """200 and all of the file, as servers do that know no ranges."""
    reply(handler, 200, (seed.directory / urllib.parse.unquote(handler.path).lstrip("/")).read_bytes())


def another_range(seed, handler):
    """The first bytes, whatever is asked."""
    _, data, size = seed.part(handler)
    whole = (seed.directory / urllib.parse.unquote(handler.path).lstrip("/")).read_bytes()[:len(data)]
    reply(handler, 206, whole, headers={"Content-Range": f"bytes 0-{len(data) - 1}/{size}"})


def redirects_for_ever(seed, handler):
    number = int(handler.path.rpartition("again=")[2] or 0) if "again=" in handler.path else 0
    reply(handler, 302, headers={"Location": f"{seed.url}x?again={number + 1}"})


def redirects_to_itself(seed, handler):
    reply(handler, 301, headers={"Location": handler.path})


def redirects_to_a_file(seed, handler):
    reply(handler, 302, headers={"Location": "file:///etc/passwd"})


def absent(seed, handler):
    reply(handler, 404)


def overloaded(seed, handler):
    reply(handler, 503, headers={"Retry-After": "86400"})


def huge_headers(seed, handler):
    handler.send_response(206)
    while True:
        handler.wfile.write(b"X-Filler: " + b"x" * 60_000 + b"\r\n")
        seed.sent += 60_000


def no_http(seed, handler):
    handler.connection.sendall(b"\x00\xff" * 1_000)
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


LIARS = (corrupt, too_short, too_long, endless, never_begins, drips, another_range, redirects_for_ever,
         redirects_to_itself, redirects_to_a_file, absent, overloaded, huge_headers, no_http)
