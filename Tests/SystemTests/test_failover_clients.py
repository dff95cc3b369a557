"""The clients that people use, in the middle of a download when the master dies."""

import hashlib
import unittest

import clients
import cluster
import world
from bep15 import Scraped
from clients import Aria2, LibTorrent, Transmission
from metainfo import Torrent
from namespaces import wait_until
from world import PORT

PATIENCE = 90
"""Seconds for a step: clients take up to 20 to give up a tracker that is gone and ask the next."""

SIZES = [20 << 20, 60 << 20, 180 << 20]
"""Ten seconds' worth at the rate that clients are held to; more where a busy machine shows it only when it is done."""


def setUpModule():
    world.require_everything()
    cluster.require_cluster()


class FailoverClients(unittest.TestCase):

    def test_all_go_on_and_new_ones_find_peers(self):
        """The .torrent file lists all trackers in one tier: whichever a client asks, the cluster answers."""
        self.download(cluster.Cluster("multicast"), [LibTorrent, Transmission, Aria2])

    def test_through_a_group(self):
        """All trackers hear each announce; the master of the moment answers, from its own address."""
        self.download(cluster.Cluster("multicast", "group"), [Transmission])

    def download(self, trackers, kinds):
        with trackers:
            scraper = trackers.client(trackers.members[0])
            for size in SIZES:
                torrent = Torrent(f"failover-{size}", size)
                seeder = self.start(trackers, Transmission, torrent, seeds=True)
                self.wait_for(trackers, lambda: seeder.is_complete() and self.scrape(scraper, torrent).seeders == 1)
                downloaders = [self.start(trackers, kind, torrent) for kind in kinds]
                everybody = [seeder, *downloaders]
                self.wait_for(trackers, lambda: all([0.05 < self.progress(client) for client in downloaders]))
                if all(client.progress < 1 for client in downloaders):
                    break
                for client in everybody:
                    client.process.kill()
            for client in downloaders:
                self.assertLess(client.progress, 1, f"{client} was too fast to be watched")

            trackers.master().kill()

            # They go on; that they are complete they tell the new master.
            self.wait_for(trackers, lambda: all([client.is_complete() for client in everybody]))
            self.wait_for(trackers, lambda: self.scrape(scraper, torrent)
                          == Scraped(seeders=len(everybody), completed=len(kinds), leechers=0))
            newcomers = [self.start(trackers, kind, torrent) for kind in kinds]
            everybody += newcomers
            self.wait_for(trackers, lambda: all([client.is_complete() for client in everybody]))
            self.wait_for(trackers, lambda: self.scrape(scraper, torrent)
                          == Scraped(seeders=len(everybody), completed=2 * len(kinds), leechers=0))
            for client in everybody:
                self.assertLessEqual(client.sources, {"tracker"}, f"{client} has peers from elsewhere")
                self.assertEqual(hashlib.sha256(client.file.read_bytes()).hexdigest(), torrent.sha256, client)
            trackers.wait_until_equal()

    def start(self, trackers, kind, torrent, seeds=False):
        """Starts a client on a host that lets UDP out to the trackers only: it learns of peers nowhere else."""
        host = trackers.host(f"{kind.__name__}-{len(trackers.network.hosts)}")
        doors = [trackers.door(member) for member in trackers.members]
        host.firewall(f"meta l4proto udp ip daddr != {{ {', '.join(sorted(set(doors)))} }} drop\n"
                      "meta l4proto udp ip6 daddr ::/0 drop")
        urls = [f"udp://{door}:{PORT}/announce" for door in dict.fromkeys(doors)]
        return kind(host, trackers.directory / host.name, torrent, urls, seeds)

    def progress(self, client):
        client.is_complete()
        return client.progress or 0

    def scrape(self, scraper, torrent):
        counts, = scraper.scrape(torrent.info_hash)
        return counts

    def wait_for(self, trackers, condition):
        def describe():
            told = [f"{process.command[:60]}: {process.words(5)}" for host in trackers.network.hosts
                    for process in host.processes if "tracker" not in process.command]
            return "\n".join([trackers.views(), *told])
        wait_until(condition, PATIENCE, describe)


if __name__ == "__main__":
    unittest.main()
