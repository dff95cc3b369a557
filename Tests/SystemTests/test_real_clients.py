"""The clients that people use move files through the tracker, and through nothing else."""

import hashlib
import time
import unittest

import clients
from bep15 import Event, Scraped
from clients import LibTorrent, QBittorrent
from metainfo import Torrent
from namespaces import wait_until
from world import World, require_everything

setUpModule = require_everything

SIZE = 4 << 20

PATIENCE = 60
"""Seconds for a step. Clients take up to 20, for their chokers think every 10 s; a busy
machine takes more."""


class RealClients(unittest.TestCase):

    def test_one_seeder_and_downloaders_of_every_kind_over_udp(self):
        with World() as world:
            announce_url = f"udp://{world.tracker.ipv4}:6969"
            self.move_files(world, announce_url, {LibTorrent: clients.ALL})

    def test_every_kind_seeds_to_the_next_over_udp(self):
        with World() as world:
            announce_url = f"udp://{world.tracker.ipv4}:6969"
            self.move_files(world, announce_url, ring(clients.ALL))

    def test_every_kind_seeds_to_the_one_before_over_http(self):
        with World() as world:
            announce_url = f"http://{world.tracker.ipv4}:6969/announce"
            self.move_files(world, announce_url, ring(clients.ALL[::-1]))

    def test_hosts_without_ipv4_over_udp(self):
        """With the two that can: UDP trackers over IPv6 are unknown to aria2 1.36 and rtorrent
        0.9.8, and Transmission 3.00 wants a public address for them."""
        with World() as world:
            announce_url = f"udp://[{world.tracker.ipv6}]:6969"
            self.move_files(world, announce_url, ring((LibTorrent, QBittorrent)), ipv4=False)

    def test_without_the_tracker_no_client_finds_a_peer(self):
        """The control: were there any other way to peers, the tests above would show nothing."""
        with World() as world:
            swarm = Swarm(world, f"udp://{world.tracker.ipv4}:6969", "control")
            swarm.start(LibTorrent, seeds=True)
            self.settle([swarm])
            nobody = f"udp://{world.probe.ipv4}:6969"
            lost = [world.client(kind, swarm.torrent, nobody) for kind in clients.ALL]
            swarm.start(LibTorrent)
            self.settle([swarm])

            def told():
                return {str(client): (client.is_complete(), client.progress, client.sources) for client in lost}

            nothing = {str(client): (False, 0, set()) for client in lost}
            wait_until(lambda: told() == nothing, PATIENCE, lambda: f"all up, without a peer: {told()}")
            time.sleep(10)  # Nothing is to happen: there is nothing to wait for.
            self.assertEqual(told(), nothing)
            self.assertEqual(swarm.scrape(), Scraped(seeders=2, completed=1, leechers=0))

    def move_files(self, world, announce_url, plan, **families):
        """For each seeder in the plan, moves a file of its own to the downloaders it maps to."""
        swarms = [Swarm(world, announce_url, seeder.__name__, **families) for seeder in plan]
        for swarm, seeder in zip(swarms, plan):
            swarm.start(seeder, seeds=True)
        self.settle(swarms)  # A downloader asks at its start and then not for half an hour.
        for swarm, downloaders in zip(swarms, plan.values()):
            for downloader in downloaders:
                swarm.start(downloader)
        self.settle(swarms)

        for swarm in swarms:
            self.assertEqual(swarm.peers_told_to_a_stranger(), swarm.peers())
            for client in swarm.clients:
                self.assertLessEqual(client.sources, {"tracker"}, f"{client} has peers from elsewhere")
                if client.tells_sources and not client.seeds:
                    self.assertEqual(client.sources, {"tracker"}, client)

        for swarm in swarms:
            for client in swarm.clients:
                client.leave()
        gone = [Scraped(seeders=0, completed=len(swarm.downloaders()), leechers=0) for swarm in swarms]
        wait_until(lambda: [swarm.scrape() for swarm in swarms] == gone, PATIENCE,
                   lambda: f"all clients gone:\n{describe(swarms)}")
        for swarm in swarms:
            for client in swarm.clients:
                client.end()
                self.assertEqual(hashlib.sha256(client.file.read_bytes()).hexdigest(),
                                 swarm.torrent.sha256, client)
        world.stop_tracker()

    def settle(self, swarms):
        """Waits until all clients have all, and the tracker knows."""
        # A list, not a generator: every client is looked at every time, for its sources.
        wait_until(lambda: all([swarm.is_settled() for swarm in swarms]), PATIENCE,
                   lambda: f"all complete:\n{describe(swarms)}")


class Swarm:
    """A torrent and its clients, which reach each other through one announce URL."""

    def __init__(self, world, announce_url, name, **families):
        self.world = world
        self.announce_url = announce_url
        self.torrent = Torrent(name, SIZE)
        self.families = families
        self.clients = []
        self._stranger = world.ask(world.tracker.ipv6 if "[" in announce_url else world.tracker.ipv4)

    def __str__(self):
        return "\n".join([f"{self.torrent.name}: {self.scrape()}",
                          *(f"  {client}: {client.progress}" for client in self.clients)])

    def start(self, kind, seeds=False):
        self.clients.append(self.world.client(
            kind, self.torrent, self.announce_url, seeds=seeds, **self.families))

    def downloaders(self):
        return [client for client in self.clients if not client.seeds]

    def scrape(self):
        self.world.check_tracker()
        counts, = self._stranger.scrape(self.torrent.info_hash)
        return counts

    def is_settled(self):
        complete = [client.is_complete() for client in self.clients]
        everybody = Scraped(seeders=len(self.clients), completed=len(self.downloaders()), leechers=0)
        return all(complete) and self.scrape() == everybody

    def peers(self):
        return {(client.host.ipv4 or client.host.ipv6, clients.PORT) for client in self.clients}

    def peers_told_to_a_stranger(self):
        """What a leecher is told that comes along, and leaves again."""
        came = self._stranger.announce(self.torrent.info_hash, 1, left=1, event=Event.STARTED)
        left = self._stranger.announce(self.torrent.info_hash, 1, left=1, event=Event.STOPPED)
        assert left.peers == (), f"a client that leaves is told of {left.peers}"
        return set(came.peers)


def ring(kinds):
    """A plan in which each kind seeds to the next and the last to the first."""
    return {kind: [kinds[(number + 1) % len(kinds)]] for number, kind in enumerate(kinds)}


def describe(swarms):
    return "\n".join(map(str, swarms))


if __name__ == "__main__":
    unittest.main()
