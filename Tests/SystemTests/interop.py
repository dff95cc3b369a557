"""The long tests of `make interop`: magnet links, many files, gigabytes, hybrids, IPv6 and peer exchange.

Each class is a kind of torrent or of discovery, each test one client and one direction. `make test` has the short
ones (test_interop.py).
"""

import os
import unittest

import clients
from clients import LibTorrent, QBittorrent, RTorrent, Transmission, UNLIMITED
from metainfo import BigTorrent, Hybrid, Torrent
from namespaces import wait_until
from peers import Swarmkeeper
from test_interop import PATIENCE, Transfer
from world import World, require_everything

setUpModule = require_everything

GIGABYTES = int(os.environ.get("SWARMKEEPER_INTEROP_GIB", "4"))

MANY = {
    ("odd",): 1_234_567,
    ("empty",): 0,
    ("Ünïcödé 名前 🐝.txt",): 70_001,
    ("deep", "deeper", "deepest", "one byte"): 1,
    ("deep", "empty, too"): 0,
    ("exactly a piece",): 65_536,
    ("exactly a block",): 16_384,
    **{("small", f"{number:03}"): 1_000 + number for number in range(100)},
    ("last",): 3 * 65_536 + 16_385,
}
"""Files of odd lengths, of none, and far smaller than a piece."""


def gives(kind):
    return lambda self: self.move(kind, Swarmkeeper)


def takes(kind):
    return lambda self: self.move(Swarmkeeper, kind)


def each_way(kinds=clients.ALL, takers=None):
    """A decorator that gives a class a test for each client and direction; `takers` where not all can take."""
    def decorate(case):
        for kind in kinds:
            setattr(case, f"test_{kind.__name__.lower()}_gives_to_us", gives(kind))
        for kind in kinds if takers is None else takers:
            setattr(case, f"test_{kind.__name__.lower()}_takes_from_us", takes(kind))
        return case
    return decorate


class Case(unittest.TestCase):
    """Moves a torrent from one client to another, over our tracker."""

    options, taker, ipv6_only, http = {}, {}, False, False
    patience = PATIENCE

    def torrent(self, directory):
        raise NotImplementedError

    def move(self, seeder, downloader):
        with World() as world:
            torrent = self.torrent(world.directory)
            transfer = Transfer(world, torrent, self.ipv6_only, self.http)
            transfer.start(seeder, seeds=True, **self.options)
            transfer.settle(self.patience)
            transfer.start(downloader, **self.options, **self.taker)
            transfer.settle(self.patience)
            transfer.check()


@each_way(takers=(LibTorrent, Transmission, QBittorrent, RTorrent))
class MagnetLinks(Case):
    """The downloader knows the info hash and the tracker; the metadata has several parts of 16 KiB.

    aria2 1.36 does not know what is left of a torrent without metadata, and tells the tracker 0: it passes for a
    seeder, and is told of leechers only.
    """

    # With the metadata's extension on, which libtorrent's binding has only beside peer exchange.
    options, taker = {"exchanges": True}, {"by_magnet": True}

    def torrent(self, directory):
        return Torrent(self.id(), (8 << 20) + 1, piece_length=4_096 * 4, is_private=False,
                       more={"comment": "x" * 40_000})


@each_way()
class ManyFiles(Case):

    def torrent(self, directory):
        return Torrent(self.id(), files=MANY)


@each_way()
class OddLengths(Case):
    """Pieces that are no multiple of a block, and a last piece of one byte."""

    def torrent(self, directory):
        return Torrent(self.id(), 40 * 49_152 + 1, piece_length=49_152)


@each_way()
class OneByte(Case):

    def torrent(self, directory):
        return Torrent(self.id(), 1)


@each_way()
class OverHTTP(Case):
    http = True

    def torrent(self, directory):
        return Torrent(self.id(), 3 << 20)


@each_way((LibTorrent, QBittorrent))
class OverIPv6(Case):
    """Hosts without IPv4, with the two that can (see test_real_clients)."""

    ipv6_only = True

    def torrent(self, directory):
        return Torrent(self.id(), 3 << 20)


@each_way((LibTorrent, QBittorrent), takers=(LibTorrent, QBittorrent, RTorrent))
class Hybrids(Case):
    """Torrents of both versions with pad files (BEP 52, BEP 47).

    Transmission 3.00 cannot read them (transmission#1339), and aria2 1.36 takes another info hash for them. rtorrent
    0.9.8 reads them as version 1; pad files are files to it, so that it cannot seed what another has fetched.
    """

    def torrent(self, directory):
        return Hybrid(self.id(), directory, {("a", "odd"): 100_001, ("b",): 70_000, ("c",): 16_384, ("d",): 5})


@each_way()
class Gigabytes(Case):
    """A file beyond the 32-bit numbers."""

    is_heavy, patience = True, 600

    def torrent(self, directory):
        return BigTorrent(self.id(), (GIGABYTES << 30) + 12_345, directory / "big.bin")


class PeerExchange(unittest.TestCase):
    """No tracker, one `--peer`: all others are known by what that one tells (BEP 11)."""

    def test_we_find_a_seeder_by_what_libtorrent_tells(self):
        with World() as world:
            torrent = Torrent(self.id(), 2 << 20, is_private=False)
            nobody = f"udp://{world.probe.ipv4}:6969"
            seeder = self.libtorrent(world, torrent, nobody, seeds=True)
            hub = self.libtorrent(world, torrent, nobody, rate=20_000, peers=[seeder], upload=1_000)
            self.settle(seeder)
            ours = world.client(Swarmkeeper, torrent, nobody, rate=UNLIMITED, exchanges=True,
                                flags=["--no-tracker", "--peer", f"{hub.host.ipv4}:{clients.PORT}"])
            wait_until(ours.is_complete, 240, lambda: f"ours has all; the hub {hub.progress}")
            self.assertEqual(ours.sha256(), torrent.sha256)
            hub.is_complete()
            self.assertLess(hub.progress, 1, "the hub has not given it all")

    def test_libtorrent_finds_a_seeder_by_what_we_tell(self):
        with World() as world:
            torrent = Torrent(self.id(), 2 << 20, is_private=False)
            nobody = f"udp://{world.probe.ipv4}:6969"
            seeder = self.libtorrent(world, torrent, nobody, seeds=True)
            self.settle(seeder)
            hub = world.client(Swarmkeeper, torrent, nobody, rate=20_000, exchanges=True, flags=[
                "--no-tracker", "--peer", f"{seeder.host.ipv4}:{clients.PORT}", "--max-up", "1000", "--seed"])
            finder = self.libtorrent(world, torrent, nobody, peers=[hub])
            wait_until(finder.is_complete, 240, lambda: f"libtorrent has all: {finder.progress}")
            self.assertEqual(finder.sha256(), torrent.sha256)
            # The hub tells each of the other, and the quicker one calls.
            self.assertTrue(self.has_called(finder, seeder) or self.has_called(seeder, finder))

    def test_private_torrents_are_told_of_to_nobody(self):
        """The flag forbids it (BEP 27): the same as above finds nobody."""
        with World() as world:
            torrent = Torrent(self.id(), 2 << 20, is_private=True)
            nobody = f"udp://{world.probe.ipv4}:6969"
            seeder = self.libtorrent(world, torrent, nobody, seeds=True)
            self.settle(seeder)
            hub = world.client(Swarmkeeper, torrent, nobody, rate=2_000, exchanges=True, flags=[
                "--no-tracker", "--peer", f"{seeder.host.ipv4}:{clients.PORT}", "--max-up", "1000", "--seed"])
            finder = self.libtorrent(world, torrent, nobody, peers=[hub])
            with self.assertRaises(AssertionError):
                wait_until(finder.is_complete, 15, "nothing is to be found")
            self.assertNotIn("PEX", finder.sources)

    def libtorrent(self, world, torrent, announce_url, seeds=False, peers=(), rate=UNLIMITED, upload=0):
        class Connected(LibTorrent):
            def command(self):
                return [*super().command(), f"--upload={upload}",
                        *(f"--peer={peer.host.ipv4}:{clients.PORT}" for peer in peers)]
        return world.client(Connected, torrent, announce_url, seeds=seeds, rate=rate, exchanges=True)

    def has_called(self, caller, called):
        log = (caller.directory / "output.log").read_text()
        return any("outgoing connection" in line and f"[ {called.host.ipv4}:{clients.PORT} " in line
                   for line in log.splitlines())

    def settle(self, client):
        wait_until(client.is_complete, PATIENCE, lambda: f"{client} is complete: {client.progress}")


del Case

if __name__ == "__main__":
    unittest.main()
