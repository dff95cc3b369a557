"""Hosts for system tests: network namespaces joined by a bridge.

BitTorrent clients refuse peers on loopback and find each other by multicast on a
shared machine, so each gets a host of its own:

        alice          bob         carol          hosts: a namespace each, eth0 within
          |             |            |
    ======+=============+============+======      the bridge, in a namespace of its own

The addresses, 10.233.0.0/24 and fd00:10:233::/64, exist inside the namespaces only, and
no namespace has a route out: nothing here can reach, or be reached from, anything else.

Nothing is left behind, however a test ends. The namespaces' names live in a mount
namespace of the test process's own, and each started process dies with its parent, so
even after `kill -9` the kernel takes everything down. For the same reason names cannot
clash between test processes.
"""

import contextlib
import ctypes
import functools
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import time

PROGRAMS = {"ip": "iproute2", "mount": "mount", "nft": "nftables", "setpriv": "util-linux"}
"""The programs that this module runs, each with its Debian package."""

NAMES = pathlib.Path("/run/netns")
"""Where `ip netns` keeps its names."""

PATIENCE = 6
"""How many times longer than on an idle machine anything may take. Nobody waits longer than need be, so that this costs
time only where a test fails."""

_LOOKS_PER_SECOND = 5
_CLONE_NEWNS = 0x0002_0000
_CLONE_NEWNET = 0x4000_0000
_libc = ctypes.CDLL(None, use_errno=True)


def _system_call(name, *arguments):
    if getattr(_libc, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)} (network namespaces need root)")


def _run(*command, text=None):
    """Runs a command to its end; its complaint becomes the exception's message."""
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8")
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


@functools.cache
def _hide_names():
    """Puts a private, empty directory over /run/netns, for this process and its children."""
    NAMES.mkdir(parents=True, exist_ok=True)
    _system_call("unshare", _CLONE_NEWNS)
    _run("mount", "--make-rprivate", "/")
    _run("mount", "-t", "tmpfs", "swarmkeeper-tests", str(NAMES))
    # SIGTERM ends the tests as Ctrl-C does, by way of every `with`, so that their files go too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def wait_until(condition, seconds, what):
    """Waits until `condition()` is true and returns its value.

    `what` names the thing awaited; a callable is asked at the end, so that it can tell how
    far things got. `seconds` are those of an idle machine; raises AssertionError after PATIENCE
    times as many, counted in looks at the condition rather than by the clock: a virtual machine
    may stand still for a minute, and everybody in it deserves the rest of their time.
    """
    for _ in range(seconds * PATIENCE * _LOOKS_PER_SECOND):
        if value := condition():
            return value
        time.sleep(1 / _LOOKS_PER_SECOND)
    raise AssertionError(f"not within {seconds * PATIENCE} s: {what() if callable(what) else what}")


class Network:
    """A bridge and the hosts on it. Use it in a `with` statement."""

    _numbers = itertools.count(1)

    def __init__(self):
        _hide_names()
        self.name = f"swarmkeeper-{os.getpid()}-{next(self._numbers)}"
        self.hosts = []
        _run("ip", "netns", "add", self.name)
        # Without snooping, multicast reaches every port at once: there is no querier here.
        _run("ip", "-n", self.name, "link", "add", "bridge", "type", "bridge", "mcast_snooping", "0")
        _run("ip", "-n", self.name, "link", "set", "bridge", "up")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for host in self.hosts:
            host.close()
        _run("ip", "netns", "delete", self.name)

    def print_words(self, kind, exception, _):
        """For an exit stack: after a failure, what all processes on all hosts have said."""
        if kind is None or not issubclass(kind, Exception):  # Ctrl-C is no failure.
            return
        for host in self.hosts:
            for process in host.processes:
                print(f"\n── {host.name}, status {process.status}: {process.command}",
                      process.words(), sep="\n", file=sys.stderr)

    def host(self, name, ipv4=True, ipv6=True):
        """A new host with the next free address of each family asked for."""
        host = Host(self, name, number=len(self.hosts) + 1, ipv4=ipv4, ipv6=ipv6)
        self.hosts.append(host)
        return host


class Host:
    """A network namespace with one interface, `eth0`, on its network's bridge.

    `ipv4` and `ipv6` are its addresses as text, or None where it does not speak that family.
    """

    def __init__(self, network, name, number, ipv4, ipv6):
        self.name = name
        self.namespace = f"{network.name}-{number}"
        self.ipv4 = f"10.233.0.{number}" if ipv4 else None
        self.ipv6 = f"fd00:10:233::{number:x}" if ipv6 else None
        self.processes = []

        _run("ip", "netns", "add", self.namespace)
        port = f"port{number}"
        self._ip("link", "add", "eth0", "type", "veth", "peer", "name", port, "netns", network.name)
        _run("ip", "-n", network.name, "link", "set", port, "master", "bridge", "up")
        self._ip("link", "set", "lo", "up")
        self._ip("link", "set", "eth0", "up")
        if ipv4:
            self._ip("address", "add", f"{self.ipv4}/24", "dev", "eth0")
        if ipv6:  # nodad: usable at once, without a second of looking for duplicates.
            self._ip("address", "add", f"{self.ipv6}/64", "dev", "eth0", "nodad")

    @property
    def addresses(self):
        return {address for address in (self.ipv4, self.ipv6) if address}

    def _ip(self, *arguments):
        _run("ip", "-n", self.namespace, *arguments)

    def start(self, command, directory, environment=None):
        """Starts a program here; what it prints goes to `<directory>/output.log`."""
        process = Process(self, command, directory, environment or {})
        self.processes.append(process)
        return process

    def firewall(self, rules):
        """Adds nftables rules, one a line, for what leaves by `eth0`."""
        chain = f'type filter hook output priority 0\noif "lo" accept\n{rules}'
        self.nft(f"table inet tests {{\nchain output {{\n{chain}\n}}\n}}\n")

    def nft(self, script):
        """Has nftables carry out a script."""
        _run("ip", "netns", "exec", self.namespace, "nft", "-f", "-", text=script)

    @contextlib.contextmanager
    def entered(self):
        """Lets the calling thread, and no other, open sockets on this host.

        A socket stays on the host where it was opened: it works after the `with` too.
        """
        with open("/proc/thread-self/ns/net") as home, open(NAMES / self.namespace) as here:
            _system_call("setns", here.fileno(), _CLONE_NEWNET)
            try:
                yield
            finally:
                _system_call("setns", home.fileno(), _CLONE_NEWNET)

    def drops(self):
        """Datagrams that came here and had no room, because whoever takes them did not get to it."""
        count = 0
        with self.entered():
            for line in pathlib.Path("/proc/thread-self/net/snmp6").read_text().splitlines():
                name, value = line.split()
                count += int(value) if name == "Udp6RcvbufErrors" else 0
            lines = pathlib.Path("/proc/thread-self/net/snmp").read_text().splitlines()
            names, values = [line.split() for line in lines if line.startswith("Udp:")]
        return count + int(values[names.index("RcvbufErrors")])

    def close(self):
        for process in self.processes:
            process.kill()
        _run("ip", "netns", "delete", self.namespace)


class Process:
    """A program running on a host, known by its process id.

    Start processes from the main thread: the kernel ends them with the *thread* that
    started them.
    """

    def __init__(self, host, command, directory, environment):
        self.command = " ".join(map(str, command))
        self.directory = pathlib.Path(directory)
        # Both wrappers end in exec, so the process id is the program's own. The environment
        # is bare: no proxy and no configuration of whoever runs the tests may leak in.
        wrappers = ["ip", "netns", "exec", host.namespace, "setpriv", "--pdeathsig", "KILL"]
        with open(self.directory / "output.log", "ab") as log:
            self._child = subprocess.Popen(
                [*wrappers, *map(str, command)],
                cwd=directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,  # Ctrl-C is for the test, which then stops us in order.
                env={"HOME": str(directory), "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
                     **environment})
        self.pid = self._child.pid

    @property
    def status(self):
        """None while it runs, then its exit status: −9 if killed by signal 9."""
        return self._child.poll()

    def signal(self, number=signal.SIGTERM):
        self._child.send_signal(number)

    def wait(self, seconds):
        """Its exit status, or None if it is still running after PATIENCE times so many seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._child.wait(seconds * PATIENCE)

    def words(self, lines=30):
        """The first and last lines of what it printed and logged, fit for a terminal."""
        words = []
        for log in sorted(self.directory.rglob("*.log")):
            text = log.read_text(errors="replace")
            printable = "".join(c if c.isprintable() or c == "\n" else "·" for c in text)
            told = list(filter(None, printable.splitlines()))
            if len(told) > 2 * lines:
                told[lines:-lines] = [f"… {len(told) - 2 * lines} lines …"]
            words += [f"{log.name}:", *told]
        return "\n".join(words)

    def kill(self):
        if self.status is None:
            self._child.kill()
            self._child.wait()
