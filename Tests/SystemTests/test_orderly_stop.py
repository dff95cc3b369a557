"""The orderly stop of a cluster: its swarms go with it, whichever way it is stopped; and one tracker's stop takes none."""

import contextlib
import random
import signal
import sqlite3
import subprocess
import unittest

import bep15
import cluster
from namespaces import wait_until
from world import tracker_program

setUpModule = cluster.require_cluster

SWARMS = 40
EMPTY = "it begins without swarms"


def peers_on_disk(member):
    """What people find in a tracker's database while it is down: rows of peers and swarms."""
    with contextlib.closing(sqlite3.connect(member.directory / "data" / "tracker.sqlite")) as database:
        return [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ["peers", "swarms", "PEER"]]


class OrderlyStop(unittest.TestCase):
    is_heavy = True

    def announce(self, trackers, seed):
        swarms = [random.Random(seed * SWARMS + number).randbytes(20) for number in range(SWARMS)]
        client = trackers.client(trackers.master())
        for number, swarm in enumerate(swarms):
            client.announce(swarm, 7_000 + number, left=0)
        trackers.wait_until_equal()
        return swarms

    def peers(self, trackers):
        return [member.node()["peers"] for member in trackers.members]

    def start_all(self, trackers):
        for member in trackers.members:
            member.start()
        trackers.wait_until_serving()
        trackers.wait_until_equal()

    def assert_emptied(self, trackers, swarms):
        for member in trackers.members:
            self.assertEqual(peers_on_disk(member), [0, 0, 0], member.number)
        said = sum(member.log.count(EMPTY) for member in trackers.members)
        self.start_all(trackers)
        self.assertEqual(self.peers(trackers), [0, 0, 0])
        client = trackers.client(trackers.master())
        self.assertEqual(set(client.scrape(*swarms)), {bep15.Scraped(0, 0, 0)})
        self.assertEqual(sum(member.log.count(EMPTY) for member in trackers.members), said + 1)

    def test_the_swarms_go_with_the_cluster_and_stay_while_one_tracker_is_stopped(self):
        with cluster.Cluster("multicast") as trackers:
            with self.subTest("one tracker after another is stopped and started: nothing is lost"):
                swarms = self.announce(trackers, 1)
                for member in trackers.members:
                    member.stop()
                    wait_until(trackers.master, 20, trackers.views)
                    member.start()
                    trackers.wait_until_serving()
                trackers.wait_until_equal()
                self.assertEqual(self.peers(trackers), [SWARMS] * 3)
            with self.subTest("one after the other is stopped, until none is left"):
                for member in trackers.members:
                    member.stop()
                self.assert_emptied(trackers, swarms)
            with self.subTest("all are stopped at one time"):
                swarms = self.announce(trackers, 2)
                for member in trackers.members:
                    member.process.signal(signal.SIGTERM)
                for member in trackers.members:
                    self.assertEqual(member.process.wait(20), 0)
                self.assert_emptied(trackers, swarms)
            with self.subTest("by an order to a slave"):
                swarms = self.announce(trackers, 3)
                self.stop_by_order(trackers, trackers.members[0])
                self.assert_emptied(trackers, swarms)
            with self.subTest("all crash: nothing is lost"):
                self.announce(trackers, 4)
                for member in trackers.members:
                    member.kill()
                self.start_all(trackers)
                self.assertEqual(self.peers(trackers), [SWARMS] * 3)
            with self.subTest("all but one crash: nothing is lost"):
                trackers.members[0].stop()
                for member in trackers.members[1:]:
                    member.kill()
                self.start_all(trackers)
                self.assertEqual(self.peers(trackers), [SWARMS] * 3)

    def stop_by_order(self, trackers, member):
        with member.host.entered():
            ended = subprocess.run(
                [tracker_program(), "stop", "--console", f"127.0.0.1:{cluster.CONSOLE}"], capture_output=True, text=True,
                timeout=60)
        self.assertEqual((ended.returncode, ended.stdout), (0, "All trackers of the cluster stop.\n"), ended.stderr)
        for each in trackers.members:
            wait_until(lambda: each.process.status is not None, 20, lambda: each.log)
            self.assertEqual(each.process.status, 0, each.log)

    def test_kept_swarms_outlive_an_order_to_stop(self):
        with cluster.Cluster("multicast", flags=["--keep-swarms"]) as trackers:
            self.announce(trackers, 5)
            self.stop_by_order(trackers, trackers.master())
            self.start_all(trackers)
            self.assertEqual(self.peers(trackers), [SWARMS] * 3)
            self.assertFalse([member.number for member in trackers.members if EMPTY in member.log])

    def test_the_last_survivor_empties_the_swarms(self):
        with cluster.Cluster("multicast", mode="survivor", count=2) as trackers:
            self.announce(trackers, 6)
            for member in trackers.members:
                member.stop()
            self.start_all(trackers)
            self.assertEqual(self.peers(trackers), [0, 0])
