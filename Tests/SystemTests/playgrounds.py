"""The playground as a folder of static files on this machine: the page's files, the console's, and the module, flat.

`StaticFolder` is a web server that knows no more than that, with the Content-Security-Policy that the page asks for. So
what is shown needs no tracker: nothing is sent anywhere.
"""

import contextlib
import http.server
import pathlib
import threading
import unittest

import browser
from serving import require_tracker

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = ROOT / ".build-wasm" / "simulator.wasm"
PLANTED = ROOT / ".build-wasm" / "planted" / "simulator.wasm"
POLICY = ("default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; "
          "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".mjs": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".wasm": "application/wasm"}
FOLDERS = ("Sources/Web/Playground", "Sources/Web/Console")


def require_playground():
    """Fails where there is no program or no browser, and skips where there is no module."""
    require_tracker()
    if lacks := browser.missing():
        raise AssertionError("\n  ".join(["the system tests miss", *lacks]))
    if not MODULE.exists():
        raise unittest.SkipTest(f"the simulator's module is not there ({MODULE}): make wasm")


class StaticFolder:
    """A web server for the page, used in a `with` statement; `module` is None where there is to be none."""

    def __init__(self, module=MODULE):
        self.module, self.asked = module, []

    def __enter__(self):
        folder = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):  # noqa: N802, the library's name
                folder.asked.append(self.path)
                file = folder.file(self.path.split("?")[0].lstrip("/"))
                content = file.read_bytes() if file else b"There is no such file."
                self.send_response(200 if file else 404)
                self.send_header("Content-Type", TYPES.get(file.suffix, "text/plain") if file else "text/plain")
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Content-Security-Policy", POLICY)
                self.end_headers()
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(content)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def file(self, name):
        if name == "simulator.wasm":
            return self.module
        if name == "simulator.mjs":
            return ROOT / "Wasm" / "simulator.mjs"
        name = name or "playground.html"
        places = [ROOT / folder / name for folder in FOLDERS]
        return next((one for one in places if "/" not in name and one.is_file()), None)
