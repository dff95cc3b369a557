"""A tracker without memory joins a cluster with a million peers, under load, and nobody notices."""

import pathlib
import tempfile
import time
import unittest
from unittest import mock

import brokers
import cluster
from namespaces import wait_until
from serving import mounted
from stalls import Stalls

setUpModule = cluster.require_cluster

PEERS = 1_000_000
PEERS_EACH = 62_500
"""A client address has ports for so many."""
RATE = 2_000
PAUSE = 1.0
"""Seconds: the longest that an answer of the master may take meanwhile. On an idle machine it is a tenth of that or
less (README.md here keeps the figures). What must not be is that clients notice."""
TRIES = 3
"""A pause that a tracker makes comes each time; one that another program on this machine makes does not."""
PATIENT = ["--missed", 5]
"""So that nobody is taken for dead who is merely held up by this machine."""


class Newcomer(unittest.TestCase):
    is_heavy = True

    def test_over_multicast(self):
        self.join("multicast")

    def test_over_rabbitmq(self):
        self.join(brokers.RabbitMQ)

    def join(self, bus):
        # Three trackers with a million peers each on one real disk wait for each other's writes for up to a second, long
        # after the fill; on hosts of their own they would not. So their disks are in memory here.
        place = self.enterContext(tempfile.TemporaryDirectory())
        with mounted(pathlib.Path(place, "disks"), "size=4g,mode=755") as disks, \
                mock.patch.object(tempfile, "tempdir", str(disks)), cluster.Cluster(bus, flags=PATIENT) as trackers:
            newcomer, master = trackers.members[0], trackers.master()
            self.forget(newcomer)
            self.fill(trackers, master)
            self.join_quickly(trackers, newcomer, master)

    def join_quickly(self, trackers, newcomer, master):
        for _ in range(TRIES):
            report, is_quick = self.join_under_load(trackers, newcomer, master)
            if is_quick:
                break
            self.forget(newcomer)
        self.assertTrue(is_quick, report)
        trackers.wait_until_equal()
        self.assertEqual(newcomer.node()["peers"], master.node()["peers"])
        self.assertGreater(newcomer.node()["peers"], PEERS)

    def forget(self, newcomer):
        newcomer.kill()
        for file in (newcomer.directory / "data").iterdir():
            file.unlink()

    def join_under_load(self, trackers, newcomer, master):
        before, epoch = trackers.drops(), master.cluster_view()["epoch"]
        load = trackers.load(master, RATE, 12, "--peers", 60_000)
        with Stalls() as stalls:
            time.sleep(2)
            newcomer.start()
            wait_until(lambda: (newcomer.cluster_view() or {}).get("isServing"), 60, trackers.views)
            report = load.report()
        slowest = report["latencyMicroseconds"]["max"] / 1e6
        print(f"    slowest {slowest * 1e3:.0f} ms, the machine's longest stall {stalls.longest * 1e3:.0f} ms, "
              f"{report['unsent']} requests too late to send", flush=True)
        self.assertIn("the whole state is here", newcomer.log)
        self.assertEqual(master.cluster_view()["epoch"], epoch, "it costs no election")
        self.assertEqual(report["errors"], 0, report)
        self.assertLessEqual(report["lost"], trackers.drops() - before, report)
        return report, slowest < PAUSE + stalls.longest

    def fill(self, trackers, master):
        fills = [trackers.fill(master, PEERS_EACH, PEERS_EACH // 20, seed + 2) for seed in range(PEERS // PEERS_EACH)]
        for fill in fills:
            self.assertEqual(fill.report()["lost"], 0)
        self.assertEqual(master.node()["peers"], PEERS)


if __name__ == "__main__":
    unittest.main()
