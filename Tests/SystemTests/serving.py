"""The tracker on this machine's loopback: for tests that look at the program from outside.

`TrackerTest` is a test case that starts trackers and other programs, ends them by their process
id, and prints what each said when a test fails. A disk that can fill up is a small tmpfs in a
mount namespace of the test process's own (`mounted`), so nothing is left behind.
"""

import contextlib
import ctypes
import functools
import json
import os
import pathlib
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import bep15
from namespaces import PATIENCE
from world import tracker_program

LONG = os.environ.get("SWARMKEEPER_LONG") == "1"
"""Whether to run what takes minutes and gigabytes, too."""

STOP = 10.0
"""Seconds within which a tracker stops: some ten times as long as it takes, for machines are busy. The parts of it are
bounded in HTTPLimits (Sources/Web), and HTTPShutdownTests show that nothing else is waited for."""

_CLONE_NEWNS = 0x0002_0000


def require_tracker():
    """Fails with what is missing and how to get it, as `world.require_everything` does."""
    missing = []
    if not os.access(tracker_program(), os.X_OK):
        missing.append(f"{tracker_program()}: swift build -c release, or name another in TRACKER")
    if os.geteuid() != 0:
        missing.append("the rights to mount and to forge sources: run as root")
    if missing:
        raise AssertionError("\n  ".join(["the system tests miss", *missing]))


def wait_until(condition, seconds, what):
    """As `namespaces.wait_until`, with a look every hundredth of a second."""
    deadline = time.monotonic() + seconds * PATIENCE
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds * PATIENCE} s: {what() if callable(what) else what}")
        time.sleep(0.01)
    return value


_given = set()
"""Ports that were found free before, and may be in use soon."""


def free_port():
    """A port that nobody uses, over UDP and TCP, below those that the kernel gives to others; each once."""
    while True:
        port = random.randrange(20_000, 32_000)
        if port in _given:
            continue
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                stack.enter_context(socket.socket(socket.AF_INET, kind)).bind(("0.0.0.0", port))
            _given.add(port)
            return port


@functools.cache
def _own_mounts():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"unshare: {os.strerror(error)} (mount namespaces need root)")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


@contextlib.contextmanager
def mounted(directory, options):
    """A tmpfs on a new directory, seen by this process and those that it starts from now on."""
    _own_mounts()
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "swarmkeeper-tests", directory], check=True)
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


def remount(directory, options):
    subprocess.run(["mount", "-o", f"remount,{options}", directory], check=True)


class Program:
    """A running program, known by its process id; what it says is in a file.

    It dies with the thread that started it: start programs from the main thread. What it prints is in `output` at its
    end or, if it `merges` that with its log, there at once: who prints much must not wait for a reader.
    """

    def __init__(self, command, log, environment=None, wrapper=(), merges=False):
        self.command, self.log = list(map(str, command)), log
        # The environment is bare: nothing of whoever runs the tests may leak in.
        environment = {"HOME": str(log.parent), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **(environment or {})}
        with open(log, "ab") as output:
            self._child = subprocess.Popen(
                [*wrapper, "setpriv", "--pdeathsig", "KILL", *self.command], env=environment, cwd=log.parent,
                stdin=subprocess.DEVNULL, stdout=output if merges else subprocess.PIPE, stderr=output,
                start_new_session=True)
        self.pid = self._child.pid
        self.output = None

    @property
    def status(self):
        return self._child.poll()

    @property
    def words(self):
        return self.log.read_text(errors="replace")

    def wait(self, seconds):
        """Its exit status, within PATIENCE times so many seconds; what it printed is in `output` then."""
        try:
            self.output, _ = self._child.communicate(timeout=seconds * PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds * PATIENCE} s: {' '.join(self.command)}") from None
        self.output = (self.output or b"").decode()
        return self._child.returncode

    def signal(self, number):
        self._child.send_signal(number)

    def kill(self):
        """As `kill -9` does; returns when it is gone."""
        self.signal(signal.SIGKILL)
        self._child.wait()
        if self._child.stdout:
            self._child.stdout.close()

    def memory(self):
        """Resident bytes now, and the most there ever were."""
        sizes = {line.split()[0]: int(line.split()[1]) * 1024
                 for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines()
                 if line.startswith(("VmRSS:", "VmHWM:"))}
        return sizes["VmRSS:"], sizes["VmHWM:"]


class Tracker(Program):
    """`tracker serve` on ports of its own. Started anew with the same place, it reads its record back."""

    def __init__(self, place, flags, environment=None, wrapper=()):
        self.place = place
        super().__init__(
            [tracker_program(), "serve", *place.flags, *flags], place.next_log(), environment, wrapper)

    def client(self, address="127.0.0.1", **patience):
        return bep15.Client(address, self.place.udp, **{"timeout": 0.3, "tries": 200, **patience})

    def is_serving(self):
        """Whether it hands out connection ids, or else: it must still be running."""
        assert self.status is None, f"the tracker ended with status {self.status}:\n{self.words}"
        with self.client("127.0.0.1", timeout=0.3, tries=1) as client, contextlib.suppress(bep15.Silence):
            return client.connect() is not None

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.place.console}{path}", timeout=60) as reply:
            return reply.read()

    def node(self):
        """What the console says of the node."""
        return json.loads(self.get("/api/v1/status"))["node"]

    def stop(self, number=signal.SIGTERM, within=STOP):
        """An orderly stop."""
        start = time.monotonic()
        self.signal(number)
        status = self.wait(20)
        took = time.monotonic() - start
        assert status == 0, f"told to stop, the tracker ended with status {status}:\n{self.words}"
        assert took < within, f"the stop took {took:.2f} s:\n{self.words}"


class Place:
    """Where a tracker lives: its ports, its data directory, its logs."""

    def __init__(self, directory, data=None):
        self.directory = directory
        directory.mkdir()
        self.data = data or directory / "data"
        self.udp, self.http, self.console = free_port(), free_port(), free_port()
        self.udp_host = "127.0.0.1"
        self._logs = 0

    @property
    def flags(self):
        return ["--udp", f"{self.udp_host}:{self.udp}", "--http", f"127.0.0.1:{self.http}",
                "--console", f"127.0.0.1:{self.console}", "--data", self.data]

    @property
    def database(self):
        return self.data / "tracker.sqlite"

    def next_log(self):
        self._logs += 1
        return self.directory / f"tracker-{self._logs}.log"

    def rows(self, query, *arguments):
        """Rows of the database, read as any other program would: without writing."""
        with contextlib.closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=10)) as database:
            return database.execute(query, arguments).fetchall()

    def is_free(self):
        """Whether nobody listens on its ports any more."""
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for kind, port in [(socket.SOCK_DGRAM, self.udp), (socket.SOCK_STREAM, self.http),
                               (socket.SOCK_STREAM, self.console)]:
                one = stack.enter_context(socket.socket(socket.AF_INET, kind))
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # For connections in TIME_WAIT.
                one.bind((self.udp_host if kind == socket.SOCK_DGRAM else "127.0.0.1", port))
                if kind == socket.SOCK_STREAM:
                    one.listen()
            return True
        return False


class TrackerTest(unittest.TestCase):
    """A test with a directory of its own, and programs that end with it."""

    def run(self, result=None):
        self.programs, self._places = [], 0
        with contextlib.ExitStack() as stack:
            self.stack = stack
            self.directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            stack.callback(self._end)
            before = len(result.failures) + len(result.errors) if result else 0
            outcome = super().run(result)
            if result and len(result.failures) + len(result.errors) > before:
                self._print_words()
            return outcome

    def _end(self):
        for program in self.programs:
            if program.status is None:
                program.kill()
            elif program.output is None:
                program.wait(1)

    def _print_words(self, most=60):
        for program in self.programs:
            lines = program.words.splitlines()
            if len(lines) > most:
                lines[most // 2:-most // 2] = [f"… {len(lines) - most} lines …"]
            print(f"\n── status {program.status}: {' '.join(program.command)}", *lines, sep="\n", file=sys.stderr)

    def place(self, data=None):
        self._places += 1
        return Place(self.directory / f"place-{self._places}", data)

    def start(self, place, *flags, environment=None, wrapper=()):
        """Starts a tracker and waits for nothing."""
        tracker = Tracker(place, flags, environment, wrapper)
        self.programs.append(tracker)
        return tracker

    def serve(self, place=None, *flags, within=30, **options):
        """Starts a tracker and waits until it serves."""
        tracker = self.start(place or self.place(), *flags, **options)
        wait_until(tracker.is_serving, within, lambda: f"the tracker serves; it says:\n{tracker.words}")
        return tracker

    def program(self, *command, environment=None, merges=False):
        """Starts the tracker's program, with any command."""
        log = self.directory / f"program-{len(self.programs)}.log"
        program = Program([tracker_program(), *command], log, environment, merges=merges)
        self.programs.append(program)
        return program

    def run_program(self, *command, within=20, **options):
        """Runs the tracker's program to its end."""
        program = self.program(*command, **options)
        program.wait(within)
        return program

    def client(self, tracker, *arguments, **patience):
        return self.stack.enter_context(tracker.client(*arguments, **patience))
