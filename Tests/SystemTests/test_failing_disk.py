"""A disk that fails calls on single files: the tracker says so and ends, or refuses and goes on; it neither traps nor
takes that for a damaged record, and nobody is told what the disk may not have.
"""

import errno
import os
import pathlib
import subprocess
import time
import unittest

import bep15
from cluster import Cluster
from namespaces import wait_until
from serving import Place, TrackerTest, mounted, remount, require_tracker

setUpModule = require_tracker

SYSTEM = 74
RECORD = ["tracker.mark", "tracker.sqlite", "tracker.sqlite-wal"]
SOURCE = pathlib.Path(__file__).parent / "failing_disk.c"


class FailingDisk(TrackerTest):

    def setUp(self):
        library = self.directory / "failing_disk.so"
        subprocess.run(["cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
        self.faults = self.directory / "faults"
        self.options = {"environment": {"LD_PRELOAD": str(library), "FAILING_DISK": str(self.faults)}}

    def fail_calls(self, *faults):
        """From now on so many (call, file, error)s."""
        draft = self.directory / "faults.new"
        draft.write_text("".join(f"{call} {name} {number}\n" for call, name, number in faults))
        draft.rename(self.faults)

    def mend(self):
        self.faults.unlink()

    def swarms(self, count):
        return [bytes([number]) * 20 for number in range(count)]

    def record(self, flags=()):
        """A place with a record as `kill -9` leaves it."""
        place = self.place()
        tracker = self.serve(place, *flags, **self.options)
        client = self.client(tracker)
        for swarm in self.swarms(5):
            client.announce(swarm, 7_000, left=0)
        tracker.kill()
        return place

    def assert_whole(self, tracker):
        self.assertEqual(self.client(tracker).scrape(*self.swarms(5)), [bep15.Scraped(1, 0, 0)] * 5)

    def test_what_cannot_be_read_is_said_and_left_alone(self):
        for name in RECORD:
            with self.subTest(name):
                place = self.record()
                before = {name: (place.data / name).read_bytes() for name in RECORD}
                self.fail_calls(("read", name, errno.EIO))
                tracker = self.start(place, **self.options)
                self.assertEqual(tracker.wait(20), SYSTEM, tracker.words)
                file = "tracker.mark" if name == "tracker.mark" else "tracker.sqlite"
                self.assertIn(f"{place.data / file} cannot be used: ", tracker.words)
                self.assertRegex(tracker.words, "(disk I/O|Input/output) error")
                # The record may be in order: nobody is to give a part of it up for this.
                self.assertNotIn("--accept-loss", tracker.words)
                self.mend()
                for kept, content in before.items():
                    self.assertEqual((place.data / kept).read_bytes(), content, kept)
                self.assert_whole(self.serve(place, **self.options))

    def test_a_record_that_cannot_be_begun_ends_the_tracker(self):
        """The mark is written, and fails when it is read again, behind the opening of the ports."""
        self.fail_calls(("read", "tracker.mark", errno.EIO))
        place = self.place()
        tracker = self.start(place, **self.options)
        self.assertEqual(tracker.wait(20), SYSTEM, tracker.words)
        self.assertIn(f"{place.data / 'tracker.mark'} cannot be used: Input/output error", tracker.words)

    def test_after_a_mark_that_was_not_written_nobody_is_answered(self):
        for call, number in [("write", errno.ENOSPC), ("write", errno.EIO), ("sync", errno.EIO)]:
            with self.subTest(call=call, number=number):
                place = self.record()
                tracker = self.serve(place, **self.options)
                client = self.client(tracker)
                client.announce(b"b" * 20, 7_000, left=0)
                self.fail_calls((call, "tracker.mark", number))
                with self.assertRaises(bep15.TrackerError):
                    client.announce(b"n" * 20, 7_000, left=0)
                self.assertEqual(tracker.wait(20), SYSTEM, tracker.words)
                for words in [f"its mark could not be written: {os.strerror(number)}", "Look after its disk",
                              "Check the disk, then start the tracker again"]:
                    self.assertIn(words, tracker.words)
                # While it lasts, no start ends in a trap, or in an answer.
                tracker = self.start(place, **self.options)
                wait_until(lambda: tracker.status is not None or self.is_refused(tracker), 20, lambda: tracker.words)
                if tracker.status is None:
                    tracker.wait(20)
                self.assertEqual(tracker.status, SYSTEM, tracker.words)
                self.mend()
                tracker = self.serve(place, **self.options)
                self.assert_whole(tracker)
                self.assertEqual(self.client(tracker).scrape(b"b" * 20), [bep15.Scraped(1, 0, 0)])
                self.client(tracker).announce(b"n" * 20, 7_000, left=0)

    def is_refused(self, tracker):
        try:
            tracker.client(timeout=0.3, tries=1).announce(b"n" * 20, 7_000, left=0)
        except bep15.TrackerError:
            return True
        except bep15.Silence:
            return False
        raise AssertionError(f"a mark cannot be written, and the tracker answered:\n{tracker.words}")

    def test_a_log_without_room_is_refused_and_served_again(self):
        place = self.record()
        tracker = self.serve(place, **self.options)
        client = self.client(tracker)
        client.announce(b"b" * 20, 7_000, left=0)
        self.fail_calls(("write", "tracker.sqlite-wal", errno.ENOSPC))
        with self.assertRaisesRegex(bep15.TrackerError, "store"):
            client.announce(b"n" * 20, 7_000, left=0)
        self.mend()
        wait_until(lambda: not self.is_refused_now(client), 10, lambda: tracker.words)
        tracker.kill()
        tracker = self.serve(place, **self.options)
        self.assert_whole(tracker)
        self.assertEqual(self.client(tracker).scrape(b"b" * 20, b"n" * 20), [bep15.Scraped(1, 0, 0)] * 2)

    def test_disks_of_a_cluster_that_had_no_room_take_writes_again(self):
        """The last of three that fills up has stored what the others could not; it goes on behind that."""
        for last, others in [(3, (1, 2)), (2, (3, 1))]:
            environment = {**self.options["environment"], "FAILING_DISK": "faults"}
            with self.subTest(last=last), Cluster("multicast", environment=environment) as trackers:
                members = {member.number: member for member in trackers.members}
                load = trackers.load(members[1], 60, 20, "--peers", 2_000)
                wait_until(lambda: members[2].node()["peers"] > 60, 10, "load")
                for number in others:
                    self.fill(members[number])
                time.sleep(0.3)
                self.fill(members[last])
                time.sleep(4)
                for number in others:
                    self.free(members[number])
                time.sleep(5)
                self.free(members[last])
                wait_until(lambda: all(self.takes_writes(member) for member in trackers.members), 10,
                           "all disks take writes again")
                load.report()

    def fill(self, member):
        (member.directory / "faults").write_text(f"write tracker.sqlite-wal {errno.ENOSPC}\n")

    def free(self, member):
        (member.directory / "faults").unlink()

    def takes_writes(self, member):
        return b'swarmkeeper_disk{state="works"} 1' in member.get("/metrics")

    def test_a_disk_that_turns_read_only_under_a_running_tracker(self):
        """As a kernel makes a file system that it has found damaged. Nothing that is open is written any more then, and
        the way back is to repair it, so the tracker refuses, says why, and ends. (By hand nobody can do that to a file
        system that somebody writes to: `mount` finds it busy.)
        """
        disk = self.stack.enter_context(mounted(self.directory / "disk", "size=64m"))
        place = Place(self.directory / "place", disk / "data")
        tracker = self.serve(place, "--keep-swarms", **self.options)
        client = self.client(tracker)
        client.announce(b"b" * 20, 7_000, left=0)
        busy = subprocess.run(["mount", "-o", "remount,ro", disk], capture_output=True, text=True)
        self.assertIn("busy", busy.stderr)
        self.fail_calls(*((call, name, errno.EROFS) for call in ("write", "sync") for name in RECORD))
        with self.assertRaisesRegex(bep15.TrackerError, "tracker has lost its disk, try another tracker"):
            client.announce(b"n" * 20, 7_000, left=0)
        self.assertEqual(tracker.wait(20), SYSTEM, tracker.words)
        for words in ["The database cannot be written to any more (", "Read-only file system", "Look after its disk",
                      f"The disk under {place.data} failed"]:
            self.assertIn(words, tracker.words)
        # Whoever starts it meanwhile is told what to do.
        remount(disk, "ro")
        tracker = self.start(place, "--keep-swarms", **self.options)
        self.assertEqual(tracker.wait(20), SYSTEM, tracker.words)
        self.assertIn("is on a file system that is mounted read-only. Mount it writable", tracker.words)
        # Once it is writable announces are granted, and what was granted before is there.
        remount(disk, "rw")
        self.mend()
        tracker = self.serve(place, "--keep-swarms", **self.options)
        client = self.client(tracker)
        self.assertEqual(client.scrape(b"b" * 20, b"n" * 20), [bep15.Scraped(1, 0, 0), bep15.Scraped(0, 0, 0)])
        client.announce(b"n" * 20, 7_000, left=0)
        self.assertEqual(tracker.node()["peers"], 2)

    def is_refused_now(self, client):
        try:
            client.announce(b"n" * 20, 7_000, left=0)
            return False
        except bep15.TrackerError:
            return True


if __name__ == "__main__":
    unittest.main()
