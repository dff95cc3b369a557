"""Several trackers that act as one, each on a host of its own, with a broker between them or none.

    tracker 1    tracker 2    tracker 3      broker        clients       hosts: a namespace each
        |            |            |             |             |
    ====+============+============+=============+=============+======    one bridge

What is asked of a tracker's console is asked from its own host: it listens on loopback.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import tempfile
import urllib.error
import urllib.request

import bep15
import brokers
import crowd
import namespaces
from namespaces import wait_until
from world import PORT, tracker_program

CONSOLE = 6970
GROUP = "239.192.7.7"
BUS_GROUP = "239.192.7.8:6971"
PATIENCE = 15
"""Seconds after which a client asks again (BEP 15)."""
DETECTION = 2.0
"""Seconds after which a silent tracker is down: two missed keepalives of a second (docs/protocol.md)."""


def require_cluster():
    """Fails with the list of what is missing and how to get it."""
    packages = {**namespaces.PROGRAMS, **{broker.program: broker.package for broker in brokers.ALL}}
    missing = [f"{program}: apt install {package}"
               for program, package in packages.items() if not shutil.which(program)]
    if not pathlib.Path(brokers.ActiveMQ.home).is_dir():
        missing.append(f"{brokers.ActiveMQ.home}: apt install {brokers.ActiveMQ.package}")
    if not os.access(tracker_program(), os.X_OK):
        missing.append(f"{tracker_program()}: swift build -c release, or name another in TRACKER")
    if os.geteuid() != 0:
        missing.append("the rights to make network namespaces: run as root")
    if missing:
        raise AssertionError("\n  ".join(["the system tests miss", *missing]))


class Member:
    """A tracker of a cluster: its host, its directory, its process from one life to the next."""

    def __init__(self, cluster, number, host, flags):
        self.cluster, self.number, self.host, self.flags = cluster, number, host, flags
        self.directory = cluster.directory / f"tracker-{number}"
        (self.directory / "data").mkdir(parents=True)
        self.process = None

    def start(self, *flags):
        self.process = self.host.start(
            [tracker_program(), "serve", "--data", self.directory / "data", *self.flags, *flags], self.directory,
            self.cluster.environment)

    def kill(self):
        """As `kill -9` does."""
        self.process.kill()

    def stop(self, within=20):
        self.process.signal(signal.SIGTERM)
        status = self.process.wait(within)
        assert status == 0, f"tracker {self.number} ended with status {status}:\n{self.process.words()}"

    @property
    def is_up(self):
        return self.process is not None and self.process.status is None

    @property
    def log(self):
        return (self.directory / "output.log").read_text(errors="replace")

    def get(self, path):
        with self.host.entered():
            connection = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            token = self.cluster.console_token
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            request = urllib.request.Request(f"http://127.0.0.1:{CONSOLE}{path}", headers=headers)
            with connection.open(request, timeout=60) as reply:
                return reply.read()

    def cluster_view(self):
        """The cluster as this tracker sees it; None where it does not answer."""
        with contextlib.suppress(OSError, urllib.error.URLError, ValueError):
            return json.loads(self.get("/api/v1/cluster"))

    def node(self):
        return json.loads(self.get("/api/v1/status"))["node"]

    def metric(self, name):
        """The sum of a metric over its labels."""
        total = 0.0
        for line in self.get("/metrics").decode().splitlines():
            if line.startswith((f"{name} ", f"{name}{{")):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def memory(self):
        """Resident bytes."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"tracker {self.number} has no memory")


class Load:
    """`tracker load` on a host, while a test does something else."""

    def __init__(self, host, directory, url, *flags):
        directory.mkdir(parents=True)
        self._out = directory / "report.json"
        command = [tracker_program(), "load", url, "--json", *flags]
        self.process = host.start(
            ["sh", "-c", f'exec "$@" > {self._out}', "load", *command], directory)

    def report(self, within=180):
        """What came of it, once it has ended."""
        status = self.process.wait(within)
        assert status == 0, f"the load ended with status {status}:\n{self.process.words()}"
        return json.loads(self._out.read_text())


class Cluster:
    """Trackers numbered from 1, all of them members. Use it in a `with` statement.

    `bus` is a class of `brokers`, or "multicast". `bus_url`, if given, makes the trackers' `--bus` of this object.
    `with` waits for a master, unless the trackers are `is_mute`: their bus lets nobody in. If the `with` ends in a
    failure, what all processes said is printed.
    """

    console_token = None
    """What the consoles ask for; a class that sets it gives the trackers the file, too."""

    def __init__(self, bus, entry="any", count=3, mode="quorum", flags=(), broker_count=1, bus_url=None,
                 is_mute=False, environment=None):
        self.extra = environment or {}
        self.bus, self.entry, self.count, self.mode, self.flags = bus, entry, count, mode, list(flags)
        self.broker_count, self._bus_url, self.is_mute = broker_count, bus_url, is_mute

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
            self.network = stack.enter_context(namespaces.Network())
            stack.push(self.network.print_words)
            self._stack = stack
            self._build()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception):
        return self._stack.__exit__(*exception)

    def _build(self):
        key = self.directory / "cluster.key"
        key.write_text(os.urandom(32).hex())
        key.chmod(0o600)
        hosts = [self.host(f"tracker-{number}") for number in range(1, self.count + 1)]
        self.brokers = []
        if self.bus != "multicast":
            for number in range(self.broker_count):
                name = f"broker-{number + 1}"
                broker = self.bus(self.host(name), self.directory / name)
                broker.start(wait=False)
                self.brokers.append(broker)
            for broker in self.brokers:
                broker.wait()
        self.probe = self.host("probe")
        # Of a login, a file says less to others than a flag.
        self.environment = {"SWARMKEEPER_CLUSTER_BUS": self.bus_url, **self.extra}
        self.common = ["--cluster-key-file", key, "--entry", self.entry, "--mode", self.mode,
                       "--udp", f"0.0.0.0:{PORT}", "--udp", f"[::]:{PORT}", "--console", f"127.0.0.1:{CONSOLE}",
                       # All peers of a load are at one address.
                       "--limit-peers-per-address", 1_000_000, "--limit-address-share", 100, *self.flags]
        if self.entry == "group":
            self.common += ["--group", f"{GROUP}:{PORT}", "--interface", "eth0"]
        if self.mode == "quorum":
            for number in range(1, self.count + 1):
                self.common += ["--members", number]
        self.members = [self.member(number, host) for number, host in enumerate(hosts, 1)]
        for member in self.members:
            member.start()
        if not self.is_mute:
            self.wait_until_serving()

    @property
    def bus_url(self):
        if self._bus_url:
            return self._bus_url(self)
        if self.bus == "multicast":
            return f"multicast://{BUS_GROUP}?interface=eth0"
        return f"stomp://{brokers.USER}:{brokers.PASSWORD}@{','.join(broker.place for broker in self.brokers)}"

    def host(self, name):
        """A host with a way to multicast groups: none has a way out, so none has one by itself."""
        host = self.network.host(name)
        host._ip("route", "add", "224.0.0.0/4", "dev", "eth0")
        return host

    def member(self, number, host=None, *flags):
        return Member(self, number, host or self.host(f"tracker-{number}"), ["--id", number, *self.common, *flags])

    # What it is

    def master(self):
        """The master that all who are up agree on, and that serves; None while there is none."""
        views = [member.cluster_view() for member in self.members if member.is_up]
        masters = {view and view["isServing"] and view["master"] for view in views}
        if len(masters) == 1 and (number := masters.pop()):
            return next(member for member in self.members if member.number == number)

    def wait_until_serving(self, seconds=40, preferred=True):
        """Waits for a master that all follow; for the one that is preferred, unless told otherwise."""
        def is_there():
            for member in self.members:
                status = member.process.status if member.process else None
                assert status is None or status < 0, \
                    f"tracker {member.number} ended with status {status}:\n{member.process.words()}"
            master = self.master()
            best = max(member.number for member in self.members if member.is_up)
            return master if master and (not preferred or master.number == best) else None
        return wait_until(is_there, seconds, lambda: f"one master that serves; {self.views()}")

    def views(self):
        return "\n".join(
            f"tracker {member.number}: {json.dumps(member.cluster_view())}" for member in self.members if member.is_up)

    def digests(self):
        """What each tracker that is up holds: (index, digest)."""
        views = [member.cluster_view() for member in self.members if member.is_up]
        return {(view["commitIndex"], view["digest"]) if view else None for view in views}

    def wait_until_equal(self, seconds=30):
        """Waits until all hold the same at the same place of their history."""
        def are_equal():
            states = self.digests()
            return len(states) == 1 and None not in states
        wait_until(are_equal, seconds, lambda: f"equal repositories; {self.views()}")

    # What is done to it

    def enter(self, context):
        """Enters a context that ends together with this one."""
        return self._stack.enter_context(context)

    def load(self, target, rate, seconds, *flags):
        """Starts load from a host of its own: so many requests a second, each of them asked once.

        One without an answer after PATIENCE seconds is lost: its client would ask again.
        """
        return self._load(target, "--rate", rate, "--seconds", seconds, "--patience", PATIENCE, *flags)

    def drops(self):
        """Datagrams that were lost on all hosts together, because a busy machine did not let a program take them.

        A tracker's socket has room for some seconds of load: what a tracker itself holds up shows elsewhere.
        """
        return sum(host.drops() for host in self.network.hosts)

    def fill(self, target, peers, torrents, seed):
        """Has so many peers announce once, from a host of their own."""
        return self._load(target, "--fill", "--peers", peers, "--torrents", torrents, "--seed", seed,
                          "--in-flight", 128)

    def _load(self, target, *flags):
        host = self.host(f"load-{len(self.network.hosts)}")
        return Load(host, self.directory / host.name, f"udp://{self.door(target)}:{PORT}", *flags)

    def door(self, target):
        """The address at which clients ask a tracker, or the addresses of several; with a group, all ask that."""
        if isinstance(target, list):
            return [self.door(member) for member in target]
        return GROUP if self.entry == "group" else target.host.ipv4

    def client(self, target, host=None, **patience):
        """A BEP 15 client, on the host `probe` unless another is given."""
        with (host or self.probe).entered():
            return self._stack.enter_context(bep15.Client(self.door(target), PORT, **patience))

    def crowd(self, target, swarms, peers_each, seed=1, host=None, **options):
        """Peers that remember what they are told, on the host `probe` unless another is given.

        They ask one tracker, or those of a list, one after the other.
        """
        with (host or self.probe).entered():
            return self._stack.enter_context(
                crowd.Crowd(PORT, swarms, peers_each, seed, address=self.door(target), **options))

    @contextlib.contextmanager
    def partition(self, *parts):
        """Cuts the network between parts of it, each a list of hosts; other hosts reach all."""
        tables = []
        for part in parts:
            others = [address for other in parts if other is not part for host in other for address in host.addresses]
            rules = "".join(
                f"ip{'6' if ':' in address else ''} saddr {address} drop\n" for address in sorted(others))
            for host in part:
                host.nft(f"table inet partition {{\nchain input {{\n"
                         f"type filter hook input priority 0\n{rules}}}\n}}\n")
                tables.append(host)
        try:
            yield
        finally:
            for host in tables:
                host.nft("delete table inet partition\n")
