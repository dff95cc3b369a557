"""A bit of what was answered and stored flips while the tracker is down: the damage is said, and nothing is lost.

`DAMAGES=100` has so many random damages, alone and in a cluster, in the place of a few.
"""

import collections
import contextlib
import gzip
import os
import pathlib
import random
import sqlite3
import time
import unittest

import bep15
import cluster
from namespaces import wait_until
from serving import TrackerTest

setUpModule = cluster.require_cluster

DAMAGES = int(os.environ.get("DAMAGES", 0))
VERSION_3 = pathlib.Path(__file__).parent / "records" / "version-3.sqlite.gz"
"""Of the last release with that version, after `kill -9`: a chunk and a log."""
TABLES = ["meta", "log", "snapshot", "swarms", "peers", "tabled"]
"""The last three are for people, and are made from the others."""
SYSTEM = 74
SAID = ["damaged", "not an SQLite database", "cannot be used", "has version"]


def flip(path, offset, bit):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))


def damage(data, what, draw):
    """Flips one bit in a part of a record, and says which."""
    database = data / "tracker.sqlite"
    log = data / "tracker.sqlite-wal"
    if what == "log's file" and log.exists() and log.stat().st_size > 32:
        path, offset = log, draw.randrange(log.stat().st_size)
    elif what == "mark":
        path, offset = data / "tracker.mark", draw.randrange((data / "tracker.mark").stat().st_size)
    else:
        # As it is after a checkpoint, with all tables in the one file.
        with contextlib.closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_schema"))
        path, offset = database, draw.randrange(database.stat().st_size)
        if what in roots:
            offset = (roots[what] - 1) * 4_096 + draw.randrange(4_096)
    bit = draw.randrange(8)
    flip(path, offset, bit)
    return f"bit {bit} of byte {offset} of {path.name}"


class Alone(TrackerTest):

    def record(self, flags=(), count=40):
        """A place with a record as `kill -9` leaves it, and the swarms that were answered."""
        place = self.place()
        tracker = self.serve(place, *flags)
        client = self.client(tracker)
        swarms = [random.Random(number).randbytes(20) for number in range(count)]
        for number, swarm in enumerate(swarms):
            client.announce(swarm, 7_000, left=number % 2)
        tracker.kill()
        return place, swarms

    def counts(self, tracker, swarms):
        return [self.client(tracker).scrape(swarm)[0] for swarm in swarms]

    def expected(self, swarms):
        return [bep15.Scraped(1 - number % 2, 0, number % 2) for number in range(len(swarms))]

    def ends_or_serves(self, tracker):
        wait_until(lambda: tracker.status is not None or tracker.is_serving(), 20, lambda: tracker.words)

    def test_a_log_that_lost_its_end_is_refused_until_the_loss_is_accepted(self):
        place, swarms = self.record()
        log = place.data / "tracker.sqlite-wal"
        flip(log, log.stat().st_size * 3 // 4, 3)
        before = log.read_bytes()
        for _ in range(2):
            tracker = self.start(place)
            self.assertEqual(tracker.wait(20), SYSTEM)
            for words in [place.database, "damaged", "the last part is lost", "--accept-loss"]:
                self.assertIn(str(words), tracker.words)
            self.assertEqual(log.read_bytes(), before)
        tracker = self.serve(place, "--accept-loss")
        left = sum(count.seeders + count.leechers for count in self.counts(tracker, swarms))
        self.assertTrue(0 < left < len(swarms), left)
        self.assertEqual((place.data / "tracker.sqlite.unreadable-1-wal").read_bytes(), before)
        self.client(tracker).announce(swarms[-1], 7_001, left=0)
        tracker.kill()
        self.client(self.serve(place)).scrape(swarms[0])

    def test_a_lost_mark_and_a_lost_database_are_missed(self):
        for name in ["tracker.mark", "tracker.sqlite"]:
            with self.subTest(name):
                place, _ = self.record(count=3)
                (place.data / name).unlink()
                tracker = self.start(place)
                self.assertEqual(tracker.wait(20), SYSTEM)
                self.assertIn("missing", tracker.words)

    def test_a_record_of_version_3_is_brought_up_to_date_once(self):
        """It has no mark; from then on it has one."""
        place = self.place()
        place.data.mkdir()
        place.database.write_bytes(gzip.decompress(VERSION_3.read_bytes()))
        tracker = self.serve(place)
        # Those peers are long gone; they were read back nevertheless.
        self.assertIn("peers=12", tracker.words)
        self.client(tracker).announce(b"h" * 20, 7_000, left=0)
        tracker.kill()
        tracker = self.serve(place)
        self.assertEqual(self.client(tracker).scrape(b"h" * 20), [bep15.Scraped(1, 0, 0)])
        tracker.kill()
        self.assertEqual(place.rows("PRAGMA user_version"), [(4,)])
        (place.data / "tracker.mark").unlink()
        tracker = self.start(place)
        self.assertEqual(tracker.wait(20), SYSTEM)
        self.assertIn("its mark, which tells how far it had come, is missing", tracker.words)

    def test_a_record_of_version_3_that_is_damaged_is_refused(self):
        place = self.place()
        place.data.mkdir()
        whole = gzip.decompress(VERSION_3.read_bytes())
        # In the middle of an entry.
        offset = whole.index(random.Random(5).randbytes(20)) + 7
        place.database.write_bytes(whole[:offset] + bytes([whole[offset] ^ 4]) + whole[offset + 1:])
        tracker = self.start(place)
        self.assertEqual(tracker.wait(20), SYSTEM)
        self.assertIn("of the log is not what was written", tracker.words)

    def test_random_damages(self):
        tally = collections.Counter()
        for number in range(DAMAGES or 6):
            draw = random.Random(number)
            place, swarms = self.record(("--durability", "process"), count=20)
            what = (["log's file", "database", "mark"] + TABLES)[number % 9]
            where = damage(place.data, what, draw)
            with self.subTest(what=what, where=where, number=number):
                tracker = self.start(place, "--durability", "process")
                self.ends_or_serves(tracker)
                if tracker.status is None:
                    self.assertEqual(self.counts(tracker, swarms), self.expected(swarms), where)
                    tally[what, "noted" if "is not what was written" in tracker.words else "changed nothing"] += 1
                    tracker.kill()
                else:
                    self.assertEqual(tracker.status, SYSTEM, tracker.words)
                    self.assertTrue(any(words in tracker.words for words in SAID), tracker.words)
                    tally[what, "refused"] += 1
        if DAMAGES:
            report("alone", tally)


def report(title, tally):
    print(flush=True)
    for (what, outcome), count in sorted(tally.items()):
        print(f"    {title}: {what}: {count} {outcome}", flush=True)


class Together(unittest.TestCase):
    """Three trackers; what two of them have answered is on the disks of two."""

    def kill_all(self, trackers):
        for member in trackers.members:
            if member.is_up:
                member.kill()

    def announce(self, trackers, member, swarms):
        client = trackers.client(member)
        for number, swarm in enumerate(swarms):
            client.announce(swarm, 7_000 + number, left=0)

    def lacking(self, trackers, member, swarms, **patience):
        """The swarms that a tracker does not count right; None where it answers nobody."""
        with contextlib.suppress(bep15.Silence, bep15.TrackerError):
            client = trackers.client(member, **patience)
            return [number for number, swarm in enumerate(swarms) if client.scrape(swarm) != [bep15.Scraped(1, 0, 0)]]

    def test_a_log_that_lost_its_end_has_no_vote_until_it_is_whole(self):
        with cluster.Cluster("multicast", flags=["--keep-swarms"]) as trackers:
            first, second, third = trackers.members
            first.kill()
            trackers.wait_until_serving()
            swarms = [random.Random(number).randbytes(20) for number in range(30)]
            self.announce(trackers, third, swarms)
            self.kill_all(trackers)
            log = second.directory / "data" / "tracker.sqlite-wal"
            flip(log, log.stat().st_size * 3 // 4, 3)
            first.start()
            second.start()
            wait_until(lambda: "has been moved away" in second.log, 20, lambda: second.log)
            # Of three disks, one lacks what was answered and one is damaged: nobody knows enough to serve.
            time.sleep(3 * cluster.DETECTION)
            for member in [first, second]:
                self.assertIsNone(self.lacking(trackers, member, swarms, timeout=0.2, tries=2))
                self.assertFalse(member.cluster_view()["isServing"])
            third.start()
            trackers.wait_until_serving(preferred=False)
            trackers.wait_until_equal()
            for member in trackers.members:
                self.assertEqual(self.lacking(trackers, member, swarms), [], member.number)
            # The one that was damaged is whole again, and has its vote: with one other it is a majority.
            third.kill()
            trackers.wait_until_serving()
            self.assertEqual(self.lacking(trackers, second, swarms), [])

    def test_random_damages(self):
        tally = collections.Counter()
        with cluster.Cluster("multicast", flags=["--keep-swarms"]) as trackers:
            swarms = []
            for number in range(DAMAGES or 2):
                self.damage_one(trackers, number, swarms, tally)
        if DAMAGES:
            report("in a cluster", tally)

    def damage_one(self, trackers, number, swarms, tally):
        draw = random.Random(number)
        first, second, third = trackers.members
        first.kill()
        trackers.wait_until_serving(preferred=False)
        new = [draw.randbytes(20) for _ in range(5)]
        self.announce(trackers, draw.choice([second, third]), new)
        swarms += new
        self.kill_all(trackers)
        what = (["log's file", "database", "mark"] + TABLES)[number % 9]
        where = damage(second.directory / "data", what, draw)
        place = f"{number}: {what}, {where}"
        said = second.log.count("has been moved away")
        noted = second.log.count("is not what was written: by a crash")
        first.start()
        second.start()
        self.settle(trackers, second, said)
        is_said = second.log.count("has been moved away") > said
        for member in [first, second]:
            # Whoever answers, answers right.
            self.assertIn(self.lacking(trackers, member, swarms, timeout=0.2, tries=2), [None, []], place)
            self.assertFalse(is_said and member.cluster_view()["isServing"], place)
        third.start()
        trackers.wait_until_serving(preferred=False)
        trackers.wait_until_equal()
        for member in trackers.members:
            self.assertEqual(self.lacking(trackers, member, swarms), [], place)
        is_noted = second.log.count("is not what was written: by a crash") > noted
        tally[what, "said, and no vote" if is_said else "noted" if is_noted else "changed nothing"] += 1

    def settle(self, trackers, second, said):
        """Waits until two trackers serve, or one of them has said that it is damaged."""
        def is_settled():
            assert second.is_up, f"tracker 2 has ended:\n{second.log[-3000:]}"
            return second.log.count("has been moved away") > said or (second.cluster_view() or {}).get("isServing")
        wait_until(is_settled, 40, trackers.views)


if __name__ == "__main__":
    unittest.main()
