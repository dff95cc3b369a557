"""The network falls apart between the trackers, and heals: what each mode promises then (docs/protocol.md)."""

import time
import unittest

import brokers
import cluster
from namespaces import wait_until

setUpModule = cluster.require_cluster

SLICE = 0.2


def announce(seconds, *sides):
    """Has several crowds announce at the same time, each through its own client."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for peers, client in sides:
            peers.announce(client, SLICE / len(sides))


class Partition(unittest.TestCase):

    def sides(self, trackers):
        """Two hosts of clients with their crowds: of the tracker that is cut off, and of the two others."""
        minority, majority = trackers.members[2], trackers.members[0]
        sides = []
        for number, member in enumerate([minority, majority]):
            host = trackers.host(f"clients-{number}")
            peers = trackers.crowd(member, swarms=10, peers_each=100, seed=number + 1, host=host, rate=400)
            # Asked once a while where nobody answers: a client that waits holds up the other crowd.
            client = trackers.client(member, host=host, timeout=0.5, tries=40)
            client.connect()
            sides.append((host, peers, client))
        return sides

    def quorum(self, bus):
        with cluster.Cluster(bus) as trackers:
            (lonely, lost, lost_client), (crowded, kept, kept_client) = self.sides(trackers)
            self.assertEqual(trackers.master(), trackers.members[2])
            announce(2, (lost, lost_client), (kept, kept_client))
            # The broker is on the side of the many.
            broker_hosts = [broker.host for broker in trackers.brokers]
            with trackers.partition(
                    [trackers.members[2].host, lonely],
                    [trackers.members[0].host, trackers.members[1].host, crowded, *broker_hosts]):
                announce(1, (lost, lost_client))  # What was under way may still be answered.
                silent_since = lost.answers + lost.refusals
                answered = kept.answers
                announce(cluster.DETECTION + 4, (lost, lost_client), (kept, kept_client))
                self.assertEqual(lost.answers + lost.refusals, silent_since, "the minority has answered")
                self.assertGreater(kept.answers, answered + 100, "the majority does not answer")
                views = [member.cluster_view() for member in trackers.members]
                self.assertEqual([view["isServing"] for view in views], [True, True, False])
                self.assertEqual({view["master"] for view in views[:2]}, {2})
                # Whoever is asked at once after the heal must not answer from the past.
            silent_since = lost.answers
            wait_until(lambda: lost.announce(lost_client, SLICE) or lost.answers > silent_since, 30, trackers.views)
            trackers.wait_until_serving()
            announce(1, (lost, lost_client), (kept, kept_client))
            self.check(trackers, (lost, lost_client), (kept, kept_client))

    def check(self, trackers, *sides):
        for peers, client in sides:
            peers.settle(client)
        trackers.wait_until_equal()
        for peers, client in sides:
            peers.check(client)

    def test_quorum_over_multicast(self):
        self.quorum("multicast")

    def test_quorum_over_rabbitmq(self):
        self.quorum(brokers.RabbitMQ)

    def test_survivors_both_serve_and_merge(self):
        with cluster.Cluster("multicast", mode="survivor") as trackers:
            (lonely, few, few_client), (crowded, many, many_client) = self.sides(trackers)
            announce(2, (few, few_client), (many, many_client))
            with trackers.partition([trackers.members[2].host, lonely],
                                    [trackers.members[0].host, trackers.members[1].host, crowded]):
                announce(cluster.DETECTION + 2, (few, few_client), (many, many_client))
                answered = few.answers, many.answers
                announce(3, (few, few_client), (many, many_client))
                self.assertGreater(few.answers, answered[0] + 100, "the side of the few does not answer")
                self.assertGreater(many.answers, answered[1] + 100, "the side of the many does not answer")
                views = [member.cluster_view() for member in trackers.members]
                self.assertEqual([view["master"] for view in views], [2, 2, 3])
            trackers.wait_until_serving()
            announce(1, (few, few_client), (many, many_client))
            self.check(trackers, (few, few_client), (many, many_client))


if __name__ == "__main__":
    unittest.main()
