"""A disk that is read-only: said with a way out, and nothing of what is there is harmed."""

from serving import Place, TrackerTest, mounted, remount, require_tracker

setUpModule = require_tracker


class ReadOnly(TrackerTest):

    def test_a_disk_that_has_become_read_only_since(self):
        disk = self.stack.enter_context(mounted(self.directory / "disk", "size=64m"))
        place = Place(self.directory / "place", disk / "data")
        tracker = self.serve(place, "--keep-swarms")
        self.client(tracker).announce(b"a" * 20, 7_000, left=1)
        tracker.stop(within=10)
        remount(disk, "ro")
        refused = self.start(place, "--keep-swarms")
        self.assertNotEqual(refused.wait(20), 0)
        self.assertIn("is on a file system that is mounted read-only", refused.words)
        self.assertIn("Mount it writable, or name another directory", refused.words)
        remount(disk, "rw")
        tracker = self.serve(place, "--keep-swarms")
        self.assertEqual(tracker.node()["peers"], 1)

    def test_a_disk_that_is_read_only_at_the_first_start(self):
        disk = self.stack.enter_context(mounted(self.directory / "disk", "size=64m"))
        remount(disk, "ro")
        refused = self.start(Place(self.directory / "place", disk / "data"))
        self.assertNotEqual(refused.wait(20), 0)
        self.assertIn("is on a file system that is mounted read-only", refused.words)
