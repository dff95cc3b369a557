"""Our own peer as one of the clients of `clients.py`, and alone on loopback, for tests that look at it closely."""

import json
import signal
import socket

import clients
import raw_peer
import serving
from clients import PORT
from serving import wait_until
from world import tracker_program


def events_in(text):
    """What `--json` has told, an object a line; other lines are for people."""
    events = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                events.append(json.loads(line))
            except ValueError:  # The last line, while it is being written.
                continue
    return events


class Swarmkeeper(clients.Client):
    """`tracker get` and `tracker seed`.

    A downloader ends by itself with status 0 once it has all and has read it back.
    """

    package = "(built here)"
    program = property(lambda self: tracker_program())
    tells_sources = False
    stop_signal = signal.SIGINT

    def __init__(self, *arguments, flags=(), **options):
        self.flags = flags
        super().__init__(*arguments, **options)

    def command(self):
        where = f"{self.host.ipv4}:{PORT}" if self.host.ipv4 else f"[{self.host.ipv6}]:{PORT}"
        limit = [] if self.rate == clients.UNLIMITED else ["--max-down", self.rate]
        return [self.program, "seed" if self.seeds else "get", self.source, "--path", self.downloads,
                "--listen", where, "--json", *limit, *([] if self.exchanges else ["--no-pex"]), *self.flags]

    def look(self):
        raise clients.Unreachable  # The end of its process tells.

    def is_complete(self):
        """Whether a downloader has ended well; of a seeder, whether it still runs: the tracker knows the rest."""
        status = self.process.status
        if self.seeds:
            assert status is None, f"{self} ended with status {status}"
            return True
        assert status in (None, 0), f"{self} ended with status {status}"
        if status == 0:
            self.progress = 1
        return status == 0

    def leave(self):
        if self.process.status is None:
            super().leave()


class PeerTest(serving.TrackerTest):
    """A test of our peer on loopback, where each other peer has an address of its own from 127.0.0.2 on."""

    def program(self, *command, merges=True, **options):
        return super().program(*command, merges=merges, **options)

    def torrent_file(self, torrent, announce_url="", **more):
        """A .torrent file of it, with a name of its own."""
        self._files = getattr(self, "_files", 0) + 1
        path = self.directory / f"torrent-{self._files}.torrent"
        path.write_bytes(torrent.file(announce_url, **more))
        return path

    def folder(self, name):
        path = self.directory / name
        path.mkdir(exist_ok=True)
        return path

    def seed(self, torrent, *flags, folder=None, trackers=("--no-tracker",), source=None, waits=True):
        """Starts a seeder of ours and waits until it tells a peer that it has all; its port is in `port`."""
        if folder is None:
            folder = self.folder("seeder")
            torrent.write(folder)
        port = serving.free_port()
        program = self.program("seed", source or self.torrent_file(torrent), "--path", folder, "--listen",
                               f"127.0.0.1:{port}", *trackers, *flags)
        program.port, program.folder = port, folder
        if waits:
            wait_until(lambda: is_seeding(program, torrent), 20, lambda: f"the seeder has all:\n{program.words}")
        return program

    def get(self, torrent, peers=(), *flags, folder=None, trackers=("--no-tracker",), source=None):
        """Starts a downloader of ours that is told of some peers: each has an `address` as (host, port)."""
        folder = folder or self.folder("downloader")
        port = serving.free_port()
        told = [part for peer in peers for part in ("--peer", "{}:{}".format(*peer.address))]
        program = self.program("get", source or self.torrent_file(torrent), "--path", folder, "--listen",
                               f"127.0.0.1:{port}", *trackers, *told, *flags)
        program.port, program.folder = port, folder
        return program

    def assert_gets(self, program, torrent, within=60):
        """A downloader ends well, and has all that belongs to the torrent."""
        status = program.wait(within)
        self.assertEqual(status, 0, f"the downloader ended with status {status}:\n{program.words}")
        self.assertEqual(torrent.sha256_in(program.folder), torrent.sha256)

    def assert_runs(self, program):
        self.assertIsNone(program.status, f"it has ended:\n{program.words}")


def is_seeding(program, torrent):
    """Whether it says to a peer that it has all; it must still be running."""
    assert program.status is None, f"the program ended with status {program.status}:\n{program.words}"
    count = len(torrent.hashes)
    whole = raw_peer.bitfield(range(count), count)
    try:
        with socket.create_connection(("127.0.0.1", program.port), 2, ("127.0.0.250", 0)) as connection:
            wire = raw_peer.Wire(connection)
            wire.greet(torrent.info_hash, within=2)
            heard = wire.listen(0.3)
            return (raw_peer.HAVE_ALL, b"") in heard or (raw_peer.BITFIELD, whole) in heard
    except (OSError, raw_peer.Closed, raw_peer.Silent):
        return False
