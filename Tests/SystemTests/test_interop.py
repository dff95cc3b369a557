"""Files move between our peer and the clients that people use, in both directions, over a tracker of ours.

`make interop` has more of it: magnet links, many files, gigabytes (interop.py)."""

import unittest

import clients
from bep15 import Scraped
from clients import Aria2, LibTorrent, QBittorrent, RTorrent, Transmission, UNLIMITED
from metainfo import Torrent
from namespaces import wait_until
from peers import Swarmkeeper
from world import World, require_everything

setUpModule = require_everything

SIZE = (64 << 20) + 12_345
"""Bytes: the last piece, and its last block, are shorter than the others."""

PATIENCE = 90
"""Seconds for a step. Clients' chokers think every 10 s, and some ask a tracker only once before they wait."""


class Interoperation(unittest.TestCase):

    def test_libtorrent_gives_to_us(self):
        self.move(LibTorrent, Swarmkeeper)

    def test_libtorrent_takes_from_us(self):
        self.move(Swarmkeeper, LibTorrent)

    def test_transmission_gives_to_us(self):
        self.move(Transmission, Swarmkeeper)

    def test_transmission_takes_from_us(self):
        self.move(Swarmkeeper, Transmission)

    def test_aria2_gives_to_us(self):
        self.move(Aria2, Swarmkeeper)

    def test_aria2_takes_from_us(self):
        self.move(Swarmkeeper, Aria2)

    def test_qbittorrent_gives_to_us(self):
        self.move(QBittorrent, Swarmkeeper)

    def test_qbittorrent_takes_from_us(self):
        self.move(Swarmkeeper, QBittorrent)

    def test_rtorrent_gives_to_us(self):
        self.move(RTorrent, Swarmkeeper)

    def test_rtorrent_takes_from_us(self):
        self.move(Swarmkeeper, RTorrent)

    def test_we_give_to_ourselves(self):
        self.move(Swarmkeeper, Swarmkeeper)

    def test_we_take_from_and_give_to_all_of_them_at_once(self):
        """A swarm of everybody: what ours has of the only seeder, the others may get from ours."""
        with World() as world:
            swarm = Transfer(world, Torrent("everybody", 16 << 20))
            swarm.start(Transmission, seeds=True)
            swarm.settle()
            for kind in (*clients.ALL, Swarmkeeper):
                swarm.start(kind)
            swarm.settle()
            swarm.check()

    def move(self, seeder, downloader):
        with World() as world:
            transfer = Transfer(world, Torrent(f"{seeder.__name__}-{downloader.__name__}", SIZE, piece_length=1 << 18))
            transfer.start(seeder, seeds=True)
            transfer.settle()
            transfer.start(downloader)
            transfer.settle()
            transfer.check()


class Transfer:
    """A torrent and its clients, which the tracker makes known to each other."""

    def __init__(self, world, torrent, ipv6_only=False, http=False):
        self.world, self.torrent, self.clients, self._ipv6_only = world, torrent, [], ipv6_only
        address = f"[{world.tracker.ipv6}]" if ipv6_only else world.tracker.ipv4
        self.announce_url = f"http://{address}:6969/announce" if http else f"udp://{address}:6969"
        self._stranger = world.ask(world.tracker.ipv6 if ipv6_only else world.tracker.ipv4)

    def __str__(self):
        clients = [f"  {client}: {client.progress}" for client in self.clients]
        return "\n".join([f"{self.torrent.name}: {self.scrape()}", *clients])

    def start(self, kind, seeds=False, **options):
        client = self.world.client(kind, self.torrent, self.announce_url, seeds=seeds, ipv4=not self._ipv6_only,
                                   **{"rate": UNLIMITED, **options})
        self.clients.append(client)
        return client

    def scrape(self):
        self.world.check_tracker()
        counts, = self._stranger.scrape(self.torrent.info_hash)
        return counts

    def is_settled(self):
        """Whether all are complete and the tracker knows; a downloader of ours that has all has left."""
        complete = [client.is_complete() for client in self.clients]
        downloaders = [client for client in self.clients if not client.seeds]
        stay = [client for client in self.clients if client.process.status is None]
        return all(complete) and self.scrape() == Scraped(len(stay), len(downloaders), 0)

    def settle(self, seconds=PATIENCE):
        wait_until(self.is_settled, seconds, lambda: f"all complete:\n{self}")

    def check(self):
        """What everybody has on the disk is what there was."""
        for client in self.clients:
            got = client.sha256()
            assert got == self.torrent.sha256, f"{client}: {got}"


if __name__ == "__main__":
    unittest.main()
