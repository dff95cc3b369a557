"""Brokers that are killed, slow, strict about logins, or gone without a word, while clients go on asking.

A tracker without its bus is silent, and nothing that was answered is lost (docs/protocol.md, docs/bus.md).
"""

import pathlib
import re
import time
import unittest
import urllib.parse

import bep15
import brokers
import cluster
from namespaces import wait_until

setUpModule = cluster.require_cluster

RATE = 2_000
PATIENCE = 20
"""Seconds for which the load waits for an answer: longer than a tracker keeps a request, so that it books each."""
SILENCE = 1.5
"""Seconds for which nobody is answered, to be sure that it is no pause."""
ESTABLISHED = "01"


def connections(member):
    """The addresses of the brokers that a tracker is connected to now."""
    found = set()
    for line in pathlib.Path(f"/proc/{member.process.pid}/net/tcp").read_text().splitlines()[1:]:
        _, _, remote, state, *_ = line.split()
        address, port = remote.split(":")
        if state == ESTABLISHED and int(port, 16) == brokers.PORT:
            found.add(".".join(map(str, reversed(bytes.fromhex(address)))))
    return found


def are_connected(trackers):
    views = [member.cluster_view() for member in trackers.members]
    return all(view and view["bus"]["isConnected"] for view in views)


def is_nobody_connected(trackers):
    views = [member.cluster_view() for member in trackers.members]
    return all(view and not view["bus"]["isConnected"] for view in views)


class BrokerTest(unittest.TestCase):

    def go_on_until(self, condition, peers, client, seconds, what):
        """The peers announce until something has happened."""
        def look():
            peers.announce(client, 0.3)
            return condition()
        # Each look takes 0.3 s, beside what `wait_until` counts.
        return wait_until(look, seconds // 2, what)

    def check_end(self, trackers, peers, client):
        """Everything that was answered is there, and all trackers have the same."""
        peers.announce(client, 0.5)
        peers.settle(client, 30)
        trackers.wait_until_equal()
        peers.check(client)
        self.assertEqual(peers.refusals, 0)
        for member in trackers.members:
            self.assertTrue(member.cluster_view()["bus"]["isConnected"], trackers.views())
            self.assertNotIn(brokers.PASSWORD, member.log)

    def check_load(self, report, trackers, target):
        """Nothing wrong was answered, and all but what came while the tracker was blind."""
        print(f"\n    {report['sent']} sent, {report['answered']} answered, {report['lost']} lost, "
              f"slowest {report['latencyMicroseconds']['max'] / 1e6:.1f} s", flush=True)
        self.assertEqual(report["errors"], 0, report)
        self.assertEqual(sum(report["wrong"].values()), 0, report)
        self.assertGreater(report["answered"], 0, report)
        given_up = sum(target.metric(f"swarmkeeper_{what}_total") for what in ("ignored", "dropped", "timed_out"))
        # A tracker that waits for its bus keeps so many requests and no more: the others the kernel drops.
        self.assertLessEqual(report["lost"], given_up + report["late"] + trackers.drops(), report)

    def check_nothing_lost(self, report, trackers):
        """But for what a busy machine drops: little."""
        drops = trackers.drops()
        self.assertLess(drops, report["sent"] // 20)
        self.assertLessEqual(report["lost"], drops, report)


class OneBroker(BrokerTest):

    def kill_and_restart(self, bus, seconds):
        with cluster.Cluster(bus) as trackers, trackers.crowd(
                trackers.members[0], swarms=20, peers_each=50, rate=300) as peers:
            broker, client = trackers.brokers[0], trackers.client(trackers.members[0])
            load = trackers.load(trackers.members[1], RATE, seconds, "--peers", 20_000, "--patience", PATIENCE)
            self.go_on_until(lambda: trackers.members[2].node()["peers"] > 2_000, peers, client, 20, "load")
            broker.kill()
            wait_until(lambda: is_nobody_connected(trackers), 10, trackers.views)
            self.check_silence(trackers, peers, client)
            broker.start(wait=False)
            self.go_on_until(lambda: are_connected(trackers), peers, client, 90, trackers.views)
            trackers.wait_until_serving()
            before = peers.answers
            self.check_end(trackers, peers, client)
            self.assertGreater(peers.answers, before)
            report = load.report()
            self.check_load(report, trackers, trackers.members[1])
            for member in trackers.members:
                bus = member.cluster_view()["bus"]
                self.assertEqual(bus["reconnections"], 1, bus)
                self.assertIn(broker.place, bus["lastProblem"])
                told = re.findall(r"the bus is lost: the bus's broker .*", member.log)
                self.assertGreater(len(told), 0, member.log)
                self.assertEqual(len(told), len(set(told)), "each reason is told once")

    def check_silence(self, trackers, peers, client):
        """No tracker answers anybody, whatever it is asked."""
        peers.rest(client)  # What was on its way arrives.
        answered = peers.answers
        peers.announce(client, SILENCE)
        self.assertEqual(peers.answers, answered)
        for member in trackers.members:
            with self.assertRaises(bep15.Silence):
                trackers.client(member, timeout=0.2, tries=2).connect()
            self.assertFalse(member.cluster_view()["isServing"])

    def test_rabbitmq_is_killed_and_restarted(self):
        self.kill_and_restart(brokers.RabbitMQ, 20)

    def test_activemq_is_killed_and_restarted(self):
        self.kill_and_restart(brokers.ActiveMQ, 10)

    def test_a_slow_broker(self):
        """0.1 s on each way to and from the broker, and now and then nothing for 1.5 s."""
        latency, stall, stalls = 0.1, 1.5, 2
        relays = []

        def slow_way(trackers):
            relays.append(trackers.enter(brokers.Relay(trackers.host("relay"), trackers.brokers[0], latency)))
            return f"stomp://{brokers.USER}:{brokers.PASSWORD}@{relays[0].place}"

        with cluster.Cluster(brokers.ActiveMQ, bus_url=slow_way) as trackers, trackers.crowd(
                trackers.members[0], swarms=20, peers_each=50, rate=300) as peers:
            relay, client = relays[0], trackers.client(trackers.members[0], timeout=4)
            round_before = trackers.master().cluster_view()["epoch"]["round"]
            load = trackers.load(trackers.members[1], 500, 7, "--peers", 5_000)
            peers.announce(client, 1)
            for _ in range(stalls):
                relay.stall(stall)
                peers.announce(client, stall + 1)
            report = load.report()
            self.assertEqual(trackers.wait_until_serving().number, 3)
            relay.latency = 0
            self.check_end(trackers, peers, client)
            self.check_load(report, trackers, trackers.members[1])
            self.check_nothing_lost(report, trackers)
            # A slave's clients wait for four messages, each of which goes through the relay twice.
            self.assertGreater(report["latencyMicroseconds"]["p50"], 4 * 2 * latency * 1e6 * 0.9)
            rounds = trackers.master().cluster_view()["epoch"]["round"] - round_before
            print(f"    {rounds} elections", flush=True)
            # A stall is nearly as long as the time of detection: each may cost an election and the way back, on a busy
            # machine also twice.
            self.assertLessEqual(rounds, 4 * stalls)
            self.assertEqual(relay.connections, 3, "no connection was given up")


class TwoBrokers(BrokerTest):
    """The first of two is lost: everybody meets at the second."""

    def test_the_first_is_killed_and_comes_back(self):
        # Nobody is to be taken for dead who is merely held up by this machine: an election is to mean something.
        with cluster.Cluster(brokers.ActiveMQ, broker_count=2, flags=["--missed", 5]) as trackers, trackers.crowd(
                trackers.members[0], swarms=20, peers_each=50, rate=300) as peers:
            first, second = trackers.brokers
            client = trackers.client(trackers.members[0])
            load = trackers.load(trackers.members[1], RATE, 12, "--peers", 20_000, "--patience", PATIENCE)
            peers.announce(client, 1)
            self.wait_until_all_are_at(trackers, first, peers, client)
            first.kill()
            self.wait_until_all_are_at(trackers, second, peers, client)
            trackers.wait_until_serving()
            # All go back to the first of the list, one by one, and nobody notices.
            epoch = trackers.master().cluster_view()["epoch"]
            first.start(wait=False)
            self.wait_until_all_are_at(trackers, first, peers, client)
            peers.announce(client, 1)
            # They are still at the second, too, for those who have not moved; nobody needs it any more.
            second.kill()
            wait_until(lambda: all(connections(member) == {first.host.ipv4} for member in trackers.members), 10,
                       lambda: list(map(connections, trackers.members)))
            peers.announce(client, 1)
            report = load.report()
            self.check_end(trackers, peers, client)
            self.assertEqual(trackers.master().cluster_view()["epoch"], epoch, "the way back costs no election")
            self.check_load(report, trackers, trackers.members[1])
            # The other broker was there at once.
            self.check_nothing_lost(report, trackers)

    def test_the_host_of_the_first_vanishes(self):
        """No connection is closed: the heart-beats that fail to come tell it."""
        with cluster.Cluster(brokers.ActiveMQ, broker_count=2) as trackers, trackers.crowd(
                trackers.members[0], swarms=20, peers_each=50, rate=300) as peers:
            first, second = trackers.brokers
            client = trackers.client(trackers.members[0])
            load = trackers.load(trackers.members[1], RATE, 8, "--peers", 20_000, "--patience", PATIENCE)
            peers.announce(client, 1)
            with trackers.partition([first.host], [member.host for member in trackers.members]):
                self.wait_until_all_are_at(trackers, second, peers, client)
                trackers.wait_until_serving()
                report = load.report()
                self.check_end(trackers, peers, client)
            # The broker is missed after six seconds, and no client asks again before fifteen. On a busy machine it may
            # take so long that the trackers give up what they had taken; `check_load` books it.
            self.check_load(report, trackers, trackers.members[1])
            for member in trackers.members:
                self.assertRegex(member.log, f"{first.place} is lost: nothing came from it for [0-9]+ ms, not even a "
                                             "heart-beat.* The next broker is tried")

    def wait_until_all_are_at(self, trackers, broker, peers, client):
        self.go_on_until(lambda: all(broker.host.ipv4 in connections(member) for member in trackers.members),
                         peers, client, 60, lambda: list(map(connections, trackers.members)))
        self.go_on_until(lambda: are_connected(trackers), peers, client, 10, trackers.views)
        for member in trackers.members:
            self.assertEqual(member.cluster_view()["bus"]["broker"], broker.place)


class Logins(BrokerTest):
    """RabbitMQ and ActiveMQ want another password than the trackers have."""

    PASSWORD = "not:the/right@one"
    PATIENCE = 2.5
    """Seconds after which a broker that refuses is asked again, at least (docs/bus.md)."""

    def test_a_refused_login_is_told_and_mended(self):
        kinds = [brokers.RabbitMQ, brokers.ActiveMQ]
        relays = []

        def wrong_login(trackers):
            for number, broker in enumerate(trackers.brokers, 1):
                relays.append(trackers.enter(brokers.Relay(trackers.host(f"relay-{number}"), broker)))
            login = f"{brokers.USER}:{urllib.parse.quote(self.PASSWORD, safe='')}"
            return f"stomp://{login}@{','.join(relay.place for relay in relays)}"

        with cluster.Cluster(lambda *place: kinds.pop(0)(*place), broker_count=2, bus_url=wrong_login,
                             is_mute=True) as trackers:
            start = time.monotonic()
            for member in trackers.members:
                for relay in relays:
                    wait_until(lambda: self.refusals(member, relay), 40, lambda: member.log)
            # Further tries, about which nothing is told.
            wait_until(lambda: sum(relay.connections for relay in relays) >= 3 * len(trackers.members), 40,
                       "more tries")
            tries = sum(relay.connections for relay in relays)
            most = len(trackers.members) * (3 + (time.monotonic() - start) / self.PATIENCE)
            self.assertLess(tries, most, "tries are made with patience")
            for member in trackers.members:
                self.assertIsNone(member.process.status)
                self.assertFalse(member.cluster_view()["isServing"])
                self.assertFalse(member.cluster_view()["bus"]["isConnected"])
                self.assertIn("it refuses the login", member.cluster_view()["bus"]["lastProblem"])
            with self.assertRaises(bep15.Silence):
                trackers.client(trackers.members[0], timeout=0.2, tries=2).connect()
            # The second broker lets them in. They go on looking for the first, in silence.
            mended = trackers.brokers[1]
            mended.kill()
            mended.password = self.PASSWORD
            mended.start()
            trackers.wait_until_serving(60)
            trackers.client(trackers.members[0]).scrape(bytes(20))
            for member in trackers.members:
                for relay in relays:
                    self.assertEqual(len(self.refusals(member, relay)), 1, member.log)
                self.check_secrecy(member)

    def refusals(self, member, relay):
        """The lines that tell of a broker's refusal."""
        clear = f"{relay.place} is lost: it refuses the login ("
        lines = [line for line in member.log.splitlines() if clear in line and "clients get no answer" not in line]
        for line in lines:
            self.assertIn("Check user, password, virtual host and the user's rights on the broker", line)
        return lines

    def check_secrecy(self, member):
        """The password is nowhere, neither as it is nor as the URL writes it."""
        shown = [path.read_text(errors="replace") for path in member.directory.glob("*.log")]
        shown += [member.get(path).decode() for path in ["/api/v1/cluster", "/api/v1/status", "/metrics"]]
        for text in shown:
            self.assertNotIn(self.PASSWORD, text)
            self.assertNotIn(urllib.parse.quote(self.PASSWORD, safe=""), text)
            self.assertNotIn(brokers.PASSWORD, text)


if __name__ == "__main__":
    unittest.main()
