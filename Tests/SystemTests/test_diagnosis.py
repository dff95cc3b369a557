"""Why is nobody answered? Real trackers that were set up wrongly, or lack something, and what they say of it.

The same words are looked for in the log, `tracker status`, `/healthz` and what HTTP clients are told.
"""

import contextlib
import json
import os
import shutil
import subprocess
import unittest
import urllib.error

import brokers
import cluster
from namespaces import wait_until
from world import PORT, tracker_program

setUpModule = cluster.require_cluster

HTTP = 6980


class Wrong(cluster.Cluster):
    """Trackers on a multicast bus that are started by the test, each as it likes."""

    def __init__(self, count=3, **options):
        super().__init__("multicast", count=count, is_mute=True,
                         flags=["--http", f"0.0.0.0:{HTTP}", "--log-level", "info"], **options)

    def __enter__(self):
        super().__enter__()
        # As if they had never been started.
        for member in self.members:
            member.kill()
            shutil.rmtree(member.directory / "data")
            (member.directory / "data").mkdir()
            (member.directory / "output.log").unlink()
        return self


class Diagnosis(unittest.TestCase):

    def tracker(self, member, *command):
        """Runs the program on a tracker's host: its exit code and what it printed."""
        with member.host.entered():
            done = subprocess.run([tracker_program(), *map(str, command)], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def reasons(self, member):
        view = member.cluster_view()
        return [finding["text"] for finding in view["findings"] if finding["isSilence"]] if view else []

    def wait_for_reason(self, member, text, seconds=30):
        wait_until(lambda: any(text in reason for reason in self.reasons(member)), seconds,
                   lambda: f"«{text}» at tracker {member.number}; it says {self.reasons(member)}")

    def check_all_say(self, member, text, public=None):
        """One cause, in the log, the status, the health and what clients are told."""
        self.wait_for_reason(member, text)
        wait_until(lambda: f"clients get no answer: {text}" in member.log, 30,
                   lambda: f"«{text}» in the log:\n{member.log}")
        self.assertEqual(member.log.count(f"clients get no answer: {text}"), 1)
        code, status = self.tracker(member, "status")
        self.assertEqual(code, 0, status)
        self.assertIn(text, status)
        with self.assertRaises(urllib.error.HTTPError) as failure:
            member.get("/healthz")
        self.assertEqual(failure.exception.code, 503)
        self.assertIn(public or text, failure.exception.read().decode())
        self.assertIn(public or text, self.announce_over_http(member))

    def announce_over_http(self, member):
        query = "info_hash=abcdefghij0123456789&peer_id=-XX0001-000000000000&port=6881&left=0"
        with member.host.entered():
            done = subprocess.run(
                ["curl", "-s", "--noproxy", "*", "--max-time", "30", f"http://127.0.0.1:{HTTP}/announce?{query}"],
                capture_output=True, timeout=60)
        return done.stdout.decode(errors="replace")

    # First starts

    def test_two_of_three(self):
        with Wrong() as trackers:
            for member in trackers.members[:2]:
                member.start()
            self.check_all_say(
                trackers.members[0], "waits for tracker 3, which has never been heard: all members have to be up once")
            trackers.members[2].start()
            trackers.wait_until_serving()
            wait_until(lambda: "clients are answered again" in trackers.members[0].log, 30, "the good news")
            self.check_all_is_well(trackers)
            self.stop_without_complaint(trackers)

    def check_all_is_well(self, trackers):
        """Any tracker tells about all: hosts and addresses come with the reports."""
        member = trackers.members[0]
        def knows_all():
            view = member.cluster_view()
            return view and all("report" in tracker for tracker in view["trackers"]) and not view["findings"]
        wait_until(knows_all, 30, lambda: json.dumps(member.cluster_view()))
        code, text = self.tracker(member, "status")
        self.assertRegex(text, r"id +role +epoch +heard +applied +lag +in sync +vote +host +clients")
        code, text = self.tracker(member, "members", "list", "--json")
        self.assertEqual([each["id"] for each in json.loads(text)["members"] if each["hasVote"]], [1, 2, 3])
        code, text = self.tracker(member, "doctor", "--json")
        report = json.loads(text)
        self.assertEqual([each["id"] for each in report["trackers"]], [1, 2, 3])
        self.assertEqual([each["wasAsked"] for each in report["trackers"]], [True, False, False])
        # The machine may grant smaller buffers than are asked for; nothing else is wrong.
        others = [each for each in report["findings"] if "receive buffer" not in each["text"]]
        self.assertEqual(others, [])
        self.assertEqual(code, 1 if report["findings"] else 0)

    def stop_without_complaint(self, trackers):
        slave = trackers.members[0]
        # An order to a slave reaches the master, and who is master already need not become it.
        self.assertEqual(self.tracker(slave, "handover", 3), (0, "Tracker 3 is master already.\n"))
        self.assertEqual(self.tracker(slave, "handover", 2), (0, "Tracker 2 is master.\n"))
        for member in trackers.members:
            member.stop()
        for member in trackers.members:
            self.assertNotIn("error", member.log)

    def test_a_stop_before_the_cluster_is_there_is_no_error(self):
        with Wrong() as trackers:
            first = trackers.members[0]
            first.start()
            self.wait_for_reason(first, "waits for trackers 2 and 3")
            first.stop()
            self.assertNotIn("error", first.log)

    # Set up wrongly

    def test_other_members(self):
        with Wrong() as trackers:
            first, second, third = trackers.members
            first.start()
            second.start("--members", 4)
            third.start()
            self.check_all_say(first, "other members at tracker 2")
            self.check_all_say(third, "other members at tracker 2")
            self.wait_for_reason(second, "other members at trackers 1 and 3")

    def test_another_key(self):
        with Wrong() as trackers:
            first, second, third = trackers.members
            first.start()
            second.start()
            key = third.directory / "other.key"
            key.write_text(os.urandom(32).hex())
            key.chmod(0o600)
            third.start("--cluster-key-file", key)
            place = first.host.ipv4
            self.wait_for_reason(third, "another key (")
            wait_until(lambda: any(f"refused from {place}" in reason for reason in self.reasons(third)), 30,
                       lambda: f"{place} in {self.reasons(third)}")
            self.check_all_say(first, "another key (", public="another key")
            code, text = self.tracker(first, "doctor")
            self.assertEqual(code, 1, text)
            self.assertIn("another key", text)

    def test_another_cluster_name(self):
        with Wrong() as trackers:
            first, second, third = trackers.members
            first.start()
            second.start()
            third.start("--cluster-name", "another")
            place = third.host.ipv4
            self.wait_for_reason(third, "another cluster name (")
            wait_until(lambda: any(f"refused from {place}" in reason for reason in self.reasons(first)), 30,
                       lambda: f"{place} in {self.reasons(first)}")
            self.check_all_say(first, "another cluster name (", public="another cluster name")

    def test_other_timings(self):
        with Wrong(mode="survivor") as trackers:
            first, second, third = trackers.members
            first.start()
            second.start()
            wait_until(lambda: (second.cluster_view() or {}).get("master") == 2, 30, "a master")
            third.start("--keepalive", "700ms")
            self.check_all_say(
                third, "this tracker may not join: it was told other settings than the cluster")
            words = "another tracker was started with another --keepalive than this one"
            for member in trackers.members:
                wait_until(lambda member=member: words in member.log, 30, lambda member=member: member.log)
            self.assertEqual(first.log.count(words), 1)
            # The others go on as if it were not there.
            self.assertEqual(second.cluster_view()["master"], 2)
            self.assertTrue(first.cluster_view()["isServing"])

    # Something is missing

    def test_the_bus_is_lost(self):
        with cluster.Cluster(brokers.RabbitMQ, flags=["--http", f"0.0.0.0:{HTTP}"]) as trackers:
            broker, = trackers.brokers
            broker.kill()
            first, _, master = trackers.members
            self.check_all_say(first, "the bus is lost (", public="the bus is lost")
            self.check_all_say(master, "the bus is lost (", public="the bus is lost")
            # Who runs the cluster is told which broker, clients are not.
            self.assertIn(broker.host.ipv4, " ".join(self.reasons(first)))
            self.assertNotIn(broker.host.ipv4, self.announce_over_http(first))
            # At their start they waited for each other, and said so; nothing was lost then.
            started = first.log.split("the bus works")[0]
            self.assertIn("clients get no answer yet: this tracker waits for the bus, and for a master", started)
            self.assertNotIn("until the bus works", started)

    def test_no_majority(self):
        with cluster.Cluster("multicast", flags=["--http", f"0.0.0.0:{HTTP}"]) as trackers:
            for member in trackers.members[1:]:
                member.kill()
            self.check_all_say(
                trackers.members[0], "no majority (1 of 3): trackers 2 and 3 are not heard")

    def test_the_disk_of_one_slave_is_full(self):
        with cluster.Cluster("multicast") as trackers, contextlib.ExitStack() as stack:
            slave = trackers.members[0]
            slave.stop()
            data = slave.directory / "data"
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "swarmkeeper-tests", data], check=True)
            stack.callback(subprocess.run, ["umount", "--lazy", data], check=True)
            slave.start()
            trackers.wait_until_serving()
            ballast = os.open(data / "ballast", os.O_WRONLY | os.O_CREAT)
            stack.callback(os.close, ballast)
            for size in [1 << 20, 4096]:
                with contextlib.suppress(OSError):
                    while True:
                        os.write(ballast, bytes(size))
            client = trackers.client(slave)
            words = "disk full: this tracker's vote is missing; the others answer as long as enough of them can store"
            number = 0
            def is_told():
                nonlocal number
                for _ in range(50):
                    number += 1
                    client.announce(number.to_bytes(20, "big"), 6881, left=1)
                return words in slave.log
            wait_until(is_told, 60, lambda: slave.log)
            self.assertNotIn("announces are refused", slave.log)
            view = slave.cluster_view()
            self.assertTrue(view["isServing"])
            self.assertIn("disk full at this tracker: its vote is missing; the others store what is announced",
                          [finding["text"] for finding in view["findings"]])
            # Any tracker tells it.
            master = trackers.members[2]
            wait_until(lambda: "the disk fails at tracker 1: a vote is missing" in
                       [finding["text"] for finding in master.cluster_view()["findings"]], 30,
                       lambda: json.dumps(master.cluster_view()))
            slave.kill()


if __name__ == "__main__":
    unittest.main()
