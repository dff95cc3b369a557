"""A tracker and its clients, each on a host of its own, for the length of a `with`."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import bep15
import clients
import namespaces
from namespaces import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
PORT = 6969


def tracker_program():
    return pathlib.Path(os.environ.get("TRACKER", ROOT / ".build" / "release" / "tracker")).resolve()


def require_everything():
    """Fails with the list of what is missing and how to get it. Nothing is skipped, ever."""
    packages = namespaces.PROGRAMS | {client.program: client.package for client in clients.ALL}
    missing = [f"{program}: apt install {package}"
               for program, package in packages.items() if not shutil.which(program)]
    python = clients.LibTorrent
    if subprocess.run([python.program, "-c", "import libtorrent"], capture_output=True).returncode:
        missing.append(f"libtorrent for {python.program}: apt install {python.package}")
    if not os.access(tracker_program(), os.X_OK):
        missing.append(f"{tracker_program()}: swift build -c release, or name another in TRACKER")
    if os.geteuid() != 0:
        missing.append("the rights to make network namespaces: run as root")
    if missing:
        raise AssertionError("\n  ".join(["the system tests miss", *missing]))


class World:
    """One network with the tracker under test, serving at once when the `with` begins.

    If the `with` ends in a failure, what all processes said is printed.
    """

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self.network = stack.enter_context(namespaces.Network())
            stack.push(self.network.print_words)
            self._stack = stack
            self._start_tracker()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception):
        return self._stack.__exit__(*exception)

    def _start_tracker(self):
        self.tracker = self.network.host("tracker")
        self.probe = self.network.host("probe")
        directory = self.directory / "tracker"
        data = directory / "data"
        data.mkdir(parents=True)
        self.tracker_process = self.tracker.start(
            [tracker_program(), "serve", "--udp", f"0.0.0.0:{PORT}", "--udp", f"[::]:{PORT}",
             "--http", f"0.0.0.0:{PORT}", "--console", "none", "--data", data], directory)
        wait_until(self._is_serving, 30, "the tracker takes HTTP connections")
        for address in self.tracker.addresses:
            self.ask(address).connect()

    def _is_serving(self):
        self.check_tracker()
        with contextlib.suppress(OSError), self.probe.entered():
            socket.create_connection((self.tracker.ipv4, PORT), timeout=1).close()
            return True

    def check_tracker(self):
        status = self.tracker_process.status
        assert status is None, f"the tracker ended with status {status}"

    def stop_tracker(self):
        """SIGTERM ends it in good order: with status 0 and soon."""
        self.check_tracker()
        self.tracker_process.signal()
        status = self.tracker_process.wait(20)
        assert status == 0, f"the tracker, told to stop, ended with status {status} (None: not at all)"

    def ask(self, address, **patience):
        """A BEP 15 client on the host `probe`, for one of the tracker's addresses."""
        with self.probe.entered():
            return self._stack.enter_context(bep15.Client(address, PORT, **patience))

    def client(self, kind, torrent, announce_url, *, seeds=False, ipv4=True, ipv6=True, **options):
        """Starts a client on a new host that lets UDP out to the tracker only.

        So no DHT and no local discovery can work, whatever the client's settings say.
        """
        role = "seeder" if seeds else "downloader"
        host = self.network.host(f"{role}-{len(self.network.hosts)}", ipv4, ipv6)
        host.firewall(f"meta l4proto udp ip daddr != {self.tracker.ipv4} drop\n"
                      f"meta l4proto udp ip6 daddr != {self.tracker.ipv6} drop")
        return kind(host, self.directory / host.name, torrent, [announce_url], seeds, **options)
