"""What stands in the way of serving is told plainly, and harms nothing."""

import contextlib
import hashlib
import random
import shutil
import socket
import sqlite3
import time
import unittest

import bep15
from crowd import Crowd
from serving import Place, TrackerTest, mounted, remount, require_tracker, wait_until

setUpModule = require_tracker

USAGE, SYSTEM, CONFIGURATION = 2, 74, 78
"""Exit codes, as `tracker --help` lists them."""


class Refusals(TrackerTest):

    def assertRefuses(self, code, *words, place=None, flags=(), within=10, **options):
        """The tracker ends soon with this code, says these words, and has served nothing."""
        tracker = self.start(place or self.place(), *flags, **options)
        self.assertEqual(tracker.wait(within), code, tracker.words)
        for word in words:
            self.assertIn(str(word), tracker.words)
        self.assertNotIn("serving", tracker.words)
        self.assertEqual(tracker.output, "", "nothing on standard output")
        return tracker.words

    def files(self, place):
        """What is in the data directory, by name, but for the lock and what SQLite needs to look into it."""
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(place.data.iterdir())
                if not path.name.endswith((".lock", "-shm"))}


class Ports(Refusals):

    def test_a_port_in_use_is_named_and_what_was_answered_stays(self):
        for kind, port in [(socket.SOCK_DGRAM, "udp"), (socket.SOCK_STREAM, "http"), (socket.SOCK_STREAM, "console")]:
            with self.subTest(port=port):
                place = self.place()
                tracker = self.serve(place)
                self.client(tracker).announce(b"h" * 20, 7_000, left=0)
                tracker.kill()
                with socket.socket(socket.AF_INET, kind) as other:
                    other.bind(("127.0.0.1", getattr(place, port)))
                    if kind == socket.SOCK_STREAM:
                        other.listen()
                    self.assertRefuses(SYSTEM, f"127.0.0.1:{getattr(place, port)}", "another", "port", place=place)
                self.assertEqual(self.client(self.serve(place)).scrape(b"h" * 20), [bep15.Scraped(1, 0, 0)])

    def test_an_address_of_another_machine(self):
        self.assertRefuses(SYSTEM, "192.0.2.1:6969", "no such address", flags=["--udp", "192.0.2.1:6969"])
        self.assertRefuses(SYSTEM, "192.0.2.1:6969", "no such address", flags=["--http", "192.0.2.1:6969"])


class Permissions(Refusals):

    NOBODY = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups")

    def setUp(self):
        self.directory.chmod(0o755)

    def owned(self):
        place = self.place()
        place.data.mkdir()
        shutil.chown(place.data, "nobody", "nogroup")
        return place

    def test_a_low_port_without_the_right_to_it(self):
        for kind in ("udp", "http"):
            with self.subTest(kind=kind):
                place = self.owned()
                setattr(place, kind, 80)
                # In a network namespace of its own, where no sysctl of this machine has freed low ports.
                self.assertRefuses(SYSTEM, "127.0.0.1:80", "permission", "CAP_NET_BIND_SERVICE", place=place,
                                   wrapper=("unshare", "--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "-",
                                            *self.NOBODY))

    def test_a_directory_of_somebody_else(self):
        place = self.place()
        tracker = self.serve(place)
        tracker.kill()
        before = self.files(place)
        self.assertRefuses(SYSTEM, place.data, "may not", "chown", place=place, wrapper=self.NOBODY)
        self.assertEqual(self.files(place), before)

    def test_a_database_of_somebody_else(self):
        place = self.owned()
        place.database.write_bytes(b"")
        place.database.chmod(0o600)
        self.assertRefuses(SYSTEM, place.database, "may not", "chown", place=place, wrapper=self.NOBODY)

    def test_a_parent_of_somebody_else(self):
        place = self.place()
        self.assertRefuses(SYSTEM, place.data, "may not", place=place, wrapper=self.NOBODY)
        self.assertFalse(place.data.exists())


class Directories(Refusals):

    def test_a_missing_parent_is_not_made(self):
        place = self.place()
        place.data = self.directory / "missing" / "data"
        self.assertRefuses(SYSTEM, place.data, "parent", "Make the parent", place=place)
        self.assertFalse(place.data.parent.exists())

    def test_a_file_in_its_place(self):
        place = self.place()
        place.data.write_text("mine")
        self.assertRefuses(SYSTEM, place.data, "not a directory", place=place)
        self.assertEqual(place.data.read_text(), "mine")
        place.data = place.data / "below"
        self.assertRefuses(SYSTEM, place.data, "not a directory", place=place)

    def test_a_directory_in_the_place_of_the_database(self):
        place = self.place()
        place.database.mkdir(parents=True)
        self.assertRefuses(SYSTEM, place.database, place=place)

    def test_a_file_system_that_is_mounted_read_only(self):
        with mounted(self.directory / "disk", "size=16m") as disk:
            place = self.place(disk / "data")
            tracker = self.serve(place)
            self.client(tracker).announce(b"h" * 20, 7_000, left=0)
            tracker.kill()
            before = self.files(place)
            remount(disk, "ro")
            self.assertRefuses(SYSTEM, disk, "read-only", place=place)
            self.assertEqual(self.files(place), before)
            place.data = disk / "new"
            self.assertRefuses(SYSTEM, disk, "read-only", place=place)
            remount(disk, "rw")
            place.data = disk / "data"
            tracker = self.serve(place)
            self.assertEqual(self.client(tracker).scrape(b"h" * 20), [bep15.Scraped(1, 0, 0)])
            tracker.stop()

    def test_a_full_disk(self):
        with mounted(self.directory / "disk", "size=16m") as disk:
            place = self.place(disk / "data")
            tracker = self.serve(place)
            self.client(tracker).announce(b"h" * 20, 7_000, left=0)
            tracker.kill()
            fill_up(disk / "ballast")
            self.assertRefuses(SYSTEM, place.data, "room", "Free some space", place=place)
            (disk / "ballast").unlink()
            tracker = self.serve(place)
            self.assertEqual(self.client(tracker).scrape(b"h" * 20), [bep15.Scraped(1, 0, 0)])
            tracker.stop()

    def test_a_disk_that_is_full_from_the_start(self):
        with mounted(self.directory / "disk", "size=64k") as disk:
            place = self.place(disk / "data")
            self.assertRefuses(SYSTEM, place.data, "room", "Free some space", place=place)


class Databases(Refusals):

    def record(self, announces=200):
        """A place with a record in one file, as it is after a crash and a check-point, and its digest."""
        place = self.place()
        tracker = self.serve(place)
        client = self.client(tracker)
        for number in range(announces):
            client.announce(random.Random(number).randbytes(20), 7_000, left=number % 2)
        # A second after its start the tracker has written down which interval it tells.
        time.sleep(1)
        digest = tracker.node()["digest"]
        tracker.kill()
        with contextlib.closing(sqlite3.connect(place.database)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return place, digest

    def assertServes(self, place, digest):
        tracker = self.serve(place)
        self.assertEqual(tracker.node()["digest"], digest)
        tracker.kill()

    def test_another_tracker_has_it_open(self):
        place = self.place()
        tracker = self.serve(place)
        self.client(tracker).announce(b"h" * 20, 7_000, left=0)
        other = Place(self.directory / "other", place.data)
        self.assertRefuses(SYSTEM, place.data, "another tracker", f"process {tracker.pid}", "Stop that one",
                           place=other)
        self.assertEqual(self.client(tracker).scrape(b"h" * 20), [bep15.Scraped(1, 0, 0)])
        tracker.kill()
        self.serve(other)  # The lock of a dead tracker keeps nobody out.

    def test_another_program_keeps_it_locked(self):
        place, digest = self.record(20)
        with contextlib.closing(sqlite3.connect(place.database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            self.assertRefuses(SYSTEM, place.database, "locked", "Close it there", place=place)
        self.assertServes(place, digest)

    def test_another_program_reads_it(self):
        place, digest = self.record(20)
        with contextlib.closing(sqlite3.connect(place.database, isolation_level=None)) as other:
            other.execute("BEGIN")
            other.execute("SELECT * FROM peers").fetchall()
            self.assertServes(place, digest)

    def test_no_database(self):
        place = self.place()
        place.data.mkdir()
        place.database.write_text("Dear diary, " * 1_000)
        before = self.files(place)
        self.assertRefuses(SYSTEM, place.database, "not an SQLite database", "Move that file away", place=place)
        self.assertEqual(self.files(place), before)

    def test_a_database_of_another_application(self):
        place = self.place()
        place.data.mkdir()
        with contextlib.closing(sqlite3.connect(place.database)) as database:
            database.execute("CREATE TABLE recipes (name TEXT)")
        before = self.files(place)
        self.assertRefuses(SYSTEM, place.database, "another application", place=place)
        self.assertEqual(self.files(place), before)

    def test_a_later_version(self):
        place, digest = self.record(20)
        with contextlib.closing(sqlite3.connect(place.database)) as database:
            version = database.execute("PRAGMA user_version").fetchone()[0]
            database.execute("PRAGMA user_version = 99")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        before = self.files(place)
        self.assertRefuses(SYSTEM, place.database, "version 99", f"up to {version}", "later", place=place)
        self.assertEqual(self.files(place), before)
        with contextlib.closing(sqlite3.connect(place.database)) as database:
            database.execute(f"PRAGMA user_version = {version}")
        self.assertServes(place, digest)

    def test_a_truncated_database(self):
        place, digest = self.record()
        whole = place.database.read_bytes()
        for length in (len(whole) - 4_096, len(whole) // 2, 4_096, 100):
            with self.subTest(bytes=length, of=len(whole)):
                place.database.write_bytes(whole[:length])
                before = self.files(place)
                self.assertRefuses(SYSTEM, place.database, "Bring back a good copy", place=place)
                self.assertEqual(self.files(place), before)
        place.database.write_bytes(whole)
        self.assertServes(place, digest)

    def test_a_damaged_header(self):
        place, _ = self.record(20)
        whole = place.database.read_bytes()
        for offset, bytes in [(0, b"scribble"), (16, b"\x00\x03"), (40, b"\xff" * 8), (100, b"\xff" * 16)]:
            with self.subTest(offset=offset):
                place.database.write_bytes(whole[:offset] + bytes + whole[offset + len(bytes):])
                before = self.files(place)
                self.assertRefuses(SYSTEM, place.database, place=place)
                self.assertEqual(self.files(place), before)

    def test_a_restart_adds_to_the_record_and_writes_nothing_of_it_again(self):
        place, digest = self.record()
        before = self.entries(place)
        self.assertServes(place, digest)
        after = self.entries(place)
        self.assertEqual(after[:len(before)], before)
        self.assertGreaterEqual(len(before), 200)

    def entries(self, place):
        with contextlib.closing(sqlite3.connect(place.database)) as database:
            return database.execute("SELECT * FROM log ORDER BY idx").fetchall()

    def test_damaged_pages(self):
        """Each page scribbled on in turn: the tracker either says so, or has lost nothing."""
        place, digest = self.record()
        whole, mark, random_bytes = place.database.read_bytes(), self.mark(place).read_bytes(), random.Random(4)
        refused = 0
        pages = len(whole) // 4_096
        for page in range(1, pages):
            for offset in (0, 2_048, 4_000):
                at = page * 4_096 + offset
                place.database.write_bytes(whole[:at] + random_bytes.randbytes(64) + whole[at + 64:])
                self.mark(place).write_bytes(mark)
                tracker = self.start(place)
                with self.subTest(page=page, offset=offset):
                    wait_until(lambda: tracker.status is not None or tracker.is_serving(), 10, "it serves or ends")
                    if tracker.status is None:
                        self.assertEqual(tracker.node()["digest"], digest, "it serves, and has lost something")
                        tracker.kill()
                    else:
                        refused += 1
                        self.assertEqual(tracker.wait(1), SYSTEM, tracker.words)
                        self.assertIn(f"{place.database} is damaged", tracker.words)
                        self.assertIn("Bring back a good copy", tracker.words)
                        # The first of them holds when the record was last opened.
                        if page > 1:
                            self.assertEqual(
                                place.database.read_bytes()[at + 64:at + 4_096], whole[at + 64:at + 4_096])
                self.clear(place)
        self.assertGreater(refused, 2)

    def mark(self, place):
        return place.data / "tracker.mark"

    def clear(self, place):
        for path in place.data.iterdir():
            path.unlink()

    def test_an_entry_that_is_missing(self):
        for which in ("min(idx)", "max(idx) / 2"):
            with self.subTest(which=which):
                place, _ = self.record()
                with contextlib.closing(sqlite3.connect(place.database)) as database:
                    database.execute(f"DELETE FROM log WHERE idx = (SELECT {which} FROM log)")
                    database.commit()
                self.assertRefuses(SYSTEM, f"{place.database} is damaged", "Bring back a good copy", place=place)


class Configurations(Refusals):

    def test_all_problems_are_told_at_once_each_with_its_place(self):
        file = self.directory / "tracker.toml"
        file.write_text('id = 0\n'
                        '[listen]\n'
                        'udp = ["127.0.0.1:99999"]\n'
                        '[announce]\n'
                        'interval = "soon"\n'
                        'num-wnat = 5\n'
                        '[limits]\n'
                        'torrents = -1\n')
        place = self.place()
        words = self.assertRefuses(CONFIGURATION, f"{file}:1:", f"{file}:3:", f"{file}:5:", f"{file}:6:", f"{file}:8:",
                                   "num-want", place=place, flags=["--config", file])
        self.assertFalse(place.data.exists(), words)

    def test_what_is_not_toml(self):
        file = self.directory / "tracker.toml"
        for text, line in [('id = 1\n[listen\n', 2), ('id = 1\nid = 2\n', 2), ('\n\nid == 3\n', 3)]:
            with self.subTest(text=text):
                file.write_text(text)
                self.assertRefuses(CONFIGURATION, f"{file}:{line}:", flags=["--config", file])
        file.write_bytes(b"id = 1 # \xff\xfe\n")
        self.assertRefuses(CONFIGURATION, file, "UTF-8", flags=["--config", file])

    def test_a_file_that_is_not_there(self):
        self.assertRefuses(CONFIGURATION, "missing.toml", flags=["--config", self.directory / "missing.toml"])
        self.assertRefuses(CONFIGURATION, self.directory, flags=["--config", self.directory])

    def test_a_bad_variable(self):
        self.assertRefuses(CONFIGURATION, "SWARMKEEPER_ANNOUNCE_INTERVAL", "soon",
                           environment={"SWARMKEEPER_ANNOUNCE_INTERVAL": "soon"})
        self.assertRefuses(CONFIGURATION, "SWARMKEEPER_ANNOUNCE_INTERVALL", "did you mean",
                           environment={"SWARMKEEPER_ANNOUNCE_INTERVALL": "30m"})

    def test_a_bad_flag(self):
        self.assertRefuses(USAGE, "--intervall", flags=["--intervall", "30m"])
        self.assertRefuses(USAGE, "--interval", "soon", flags=["--interval", "soon"])
        self.assertRefuses(USAGE, "--num-want", flags=["--num-want"])

    def test_a_list_with_mistakes(self):
        file = self.directory / "list.txt"
        file.write_text(f"{'a' * 40}\n{'b' * 39}\n# {'c' * 39}\nxyz\n")
        self.assertRefuses(CONFIGURATION, f"{file}:2", f"{file}:4", flags=["--access", "allow", "--access-list", file])
        self.assertRefuses(CONFIGURATION, "gone.txt", flags=["--access", "deny", "--access-list", "gone.txt"])

    def test_users_with_mistakes(self):
        file = self.directory / "users.txt"
        file.write_text("alice aaaaaaaaaaaa\nbob short\ncarol aaaaaaaaaaaa\n")
        words = self.assertRefuses(CONFIGURATION, f"{file}:2", f"{file}:3",
                                   flags=["--access", "private", "--users", file])
        self.assertNotIn("aaaaaaaaaaaa", words, "passkeys are secrets")

    def test_accounts_with_mistakes(self):
        file = self.directory / "accounts.txt"
        file.write_text("alice admin hunter2hunter2\n# fine\nbob king $scrypt$\n")
        words = self.assertRefuses(CONFIGURATION, f"{file}:1", f"{file}:3", flags=["--console-accounts-file", file])
        self.assertNotIn("hunter2", words, "somebody's password")
        self.assertRefuses(CONFIGURATION, "gone.txt", flags=["--console-accounts-file", "gone.txt"])


class FullDisk(TrackerTest):

    def test_a_disk_that_fills_up_while_serving(self):
        for durability in ("disk", "process"):
            with self.subTest(durability=durability), mounted(self.directory / durability, "size=12m") as disk:
                self.fill_and_free(disk, durability)

    def fill_and_free(self, disk, durability):
        place = self.place(disk / "data")
        tracker = self.serve(place, "--durability", durability)
        client = self.client(tracker)
        before = client.announce(b"b" * 20, 7_000, left=0)
        crowd = self.stack.enter_context(Crowd(place.udp, swarms=30, peers_each=150, seed=9))
        # Not so many that the write-ahead log has been copied: it would begin anew, and take long to fill.
        crowd.announce(client, 60, until=lambda: crowd.answers > 500)
        self.assertEqual(crowd.refusals, 0)

        fill_up(disk / "ballast")
        self.assertTrue(crowd.announce(client, 120, until=lambda: crowd.refusals > 1_000),
                        f"announces get errors: {crowd.refusals}, and {crowd.answers} answers")
        self.assertIsNone(tracker.status, "it goes on")
        answers = crowd.answers
        crowd.settle(client)
        with self.assertRaisesRegex(bep15.TrackerError, "store"):
            client.announce(b"n" * 20, 7_000, left=0)
        crowd.check_counts(client)  # Scrapes are answered, what was answered before is there, what was refused is not.
        self.assertEqual(client.scrape(b"b" * 20, b"n" * 20), [bep15.Scraped(1, 0, 0), bep15.Scraped(0, 0, 0)])

        (disk / "ballast").unlink()
        wait_until(lambda: self.is_accepted(client, b"n" * 20), 10, "announces are answered again")
        wait_until(lambda: "answered again" in tracker.words, 10, "the log says so")
        refusals = crowd.refusals
        crowd.announce(client, 0.3)
        crowd.announce(client, 60, until=lambda: crowd.answers > answers)
        self.assertEqual(crowd.refusals, refusals)
        self.assertGreater(crowd.answers, answers)
        tracker.kill()
        crowd.forget()
        tracker = self.serve(place)
        client = self.client(tracker)
        crowd.check(client)
        self.assertEqual(client.scrape(b"b" * 20, b"n" * 20), [bep15.Scraped(1, 0, 0)] * 2)
        tracker.kill()

    def is_accepted(self, client, info_hash):
        try:
            client.announce(info_hash, 7_000, left=0)
            return True
        except bep15.TrackerError:
            return False

    def test_a_stop_on_a_full_disk(self):
        """It cannot write that the swarms are gone; it ends all the same, and starts again."""
        with mounted(self.directory / "disk", "size=8m") as disk:
            place = self.place(disk / "data")
            tracker = self.serve(place)
            self.client(tracker).announce(b"b" * 20, 7_000, left=0)
            fill_up(disk / "ballast")
            tracker.stop()
            self.assertIn("full", tracker.words)
            (disk / "ballast").unlink()
            self.serve(place).stop()


def fill_up(ballast):
    """Takes all the room that a file system has."""
    with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (1 << 20, 1 << 12):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass


if __name__ == "__main__":
    unittest.main()
