"""What goes wrong around our peer: other peers, trackers, disks and itself, as real processes."""

import json
import os
import signal
import struct
import time
import unittest

import cluster
import raw_peer
import serving
from clients import UNLIMITED
from metainfo import Torrent
from peers import PeerTest, Swarmkeeper, is_seeding
from raw_peer import BLOCK, EXTENDED, INTERESTED, PIECE, REJECT, UNCHOKE, Seeder, Wire, ready_to_take
from serving import require_tracker, wait_until
from world import PORT

MIB = 1 << 20
GIVEN_UP, DISK = 69, 74
"""Exit codes."""

SLOW = 2 * MIB
"""Bytes a second, as a limit: a transfer lasts long enough for something to go wrong in it."""


def setUpModule():
    require_tracker()
    cluster.require_cluster()


class Measured(Seeder):
    """Gives some hundred blocks a second, so that there is a middle."""

    def requested(self, wire, piece, begin, length):
        time.sleep(0.004)
        super().requested(wire, piece, begin, length)


class Peers(PeerTest):

    def test_the_only_peer_with_the_wanted_pieces_dies_and_comes_back(self):
        """The downloader waits for it, and does not end (P4)."""
        torrent = Torrent(self.id(), 8 * MIB)
        seeder = self.seed(torrent, "--max-up", SLOW)
        address = self.address_of(seeder)
        downloader = self.get(torrent, [address])
        wait_until(lambda: has_some(downloader, torrent), 30, "some of it has come")
        seeder.kill()
        time.sleep(3)  # Nothing is to happen: there is nothing to wait for.
        self.assert_runs(downloader)
        again = self.program("seed", self.torrent_file(torrent), "--path", seeder.folder, "--listen",
                             f"127.0.0.1:{seeder.port}", "--no-tracker")
        self.assert_runs(again)
        self.assert_gets(downloader, torrent, 120)

    def test_who_began_with_a_magnet_link_gives_the_metadata_on(self):
        """The next one has all of it, though whoever had the torrent's file is gone."""
        torrent = Torrent(self.id(), MIB, is_private=False)
        seeder = self.seed(torrent)
        first = self.get(torrent, [self.address_of(seeder)], "--seed", source=torrent.magnet(),
                         folder=self.folder("first"))
        wait_until(lambda: is_seeding(first, torrent), 60, "the first has all")
        seeder.kill()
        second = self.get(torrent, [self.address_of(first)], source=torrent.magnet(), folder=self.folder("second"))
        self.assert_gets(second, torrent)

    def test_a_peer_dies_and_another_gives_the_rest(self):
        torrent = Torrent(self.id(), 8 * MIB)
        first = self.seed(torrent, "--max-up", SLOW)
        second = self.seed(torrent, "--max-up", SLOW, folder=first.folder)
        downloader = self.get(torrent, [self.address_of(first), self.address_of(second)])
        wait_until(lambda: has_some(downloader, torrent), 30, "some of it has come")
        first.kill()
        self.assert_gets(downloader, torrent, 60)

    def address_of(self, program):
        class Known:
            address = ("127.0.0.1", program.port)
        return Known

    def test_two_downloaders_give_each_other_what_they_have(self):
        """Each knows a seeder with half of it, and the other (P1)."""
        torrent = Torrent(self.id(), 4 * MIB)

        class Half(Seeder):
            rest = 0

            def introduce(self, wire):
                wire.say(raw_peer.BITFIELD, raw_peer.bitfield(range(self.rest, self.count, 2), self.count))
                wire.say(UNCHOKE)
        even, odd = self.enterContext(Half(torrent, "127.0.0.2")), Half(torrent, "127.0.0.3")
        odd.rest = 1
        self.enterContext(odd)
        one = self.get(torrent, [even], "--seed", folder=self.folder("one"))
        other = self.get(torrent, [odd, self.address_of(one)], "--seed", folder=self.folder("other"))
        for program in (one, other):
            wait_until(lambda: torrent.sha256_in(program.folder) == torrent.sha256, 60, "each has all")

    def test_nobody_is_there_until_it_gives_up(self):
        torrent = Torrent(self.id(), MIB)
        program = self.get(torrent, [], "--give-up-after", "3s")
        self.assertEqual(program.wait(30), GIVEN_UP, program.words)
        self.assertTrue(program.words.strip(), "it says why")

    def test_what_it_tells_programs(self):
        """With `--json`, each line that it prints is an object; words for people go elsewhere."""
        torrent = Torrent(self.id(), MIB)
        with Seeder(torrent) as seeder:
            program = self.program("get", self.torrent_file(torrent), "--path", self.folder("json"), "--no-tracker",
                                   "--listen", "127.0.0.1:0", "--json", "--peer", "{}:{}".format(*seeder.address),
                                   merges=False)
            self.assertEqual(program.wait(30), 0, program.words)
        lines = program.output.splitlines()
        self.assertTrue(lines)
        for line in lines:
            self.assertIsInstance(json.loads(line), dict, line)

    def test_a_wanted_ratio_ends_it(self):
        torrent = Torrent(self.id(), 2 * MIB)
        seeder = self.seed(torrent, "--seed-ratio", "1")
        with Wire.dial(seeder.port, source="127.0.0.4") as wire:
            ready_to_take(wire, torrent)
            for index in range(len(torrent.hashes)):
                for begin in range(0, torrent.piece_length, BLOCK):
                    self.assertEqual(wire.fetch(index, begin, BLOCK), torrent.piece(index)[begin:begin + BLOCK])
            self.assertEqual(seeder.wait(30), 0, seeder.words)

    def test_no_faster_than_it_may(self):
        """6 MiB at 2 MiB a second, with a second's worth at once: two seconds at least, however idle the machine."""
        torrent = Torrent(self.id(), 6 * MIB)
        for limited, flags in (("down", ([], ["--max-down", "2MiB"])), ("up", (["--max-up", "2MiB"], []))):
            with self.subTest(limited):
                seeder = self.seed(torrent, *flags[0])
                begin = time.monotonic()
                downloader = self.get(torrent, [self.address_of(seeder)], *flags[1], folder=self.folder(limited))
                self.assert_gets(downloader, torrent)
                self.assertGreater(time.monotonic() - begin, 1.8)
                seeder.kill()


class Trackers(PeerTest):

    def test_the_tracker_falls_silent_during_a_download(self):
        """Those who know each other go on (P6), and end in spite of it."""
        tracker = self.serve()
        url = f"udp://127.0.0.1:{tracker.place.udp}"
        torrent = Torrent(self.id(), 16 * MIB)
        source = self.torrent_file(torrent, url)
        seeder = self.seed(torrent, "--max-up", SLOW, source=source, trackers=())
        downloader = self.get(torrent, source=source, trackers=())
        wait_until(lambda: has_some(downloader, torrent), 60, "some of it has come")
        tracker.signal(signal.SIGSTOP)
        self.assert_gets(downloader, torrent, 60)
        self.assert_runs(seeder)

    def test_peers_that_start_before_their_tracker(self):
        """Nobody ends for want of a tracker: all ask again (BEP 15: after 15 s, then 30 s)."""
        place = self.place()
        torrent = Torrent(self.id(), MIB)
        source = self.torrent_file(torrent, f"udp://127.0.0.1:{place.udp}")
        seeder = self.seed(torrent, source=source, trackers=())
        downloader = self.get(torrent, source=source, trackers=())
        time.sleep(3)
        self.assert_runs(seeder)
        self.assert_runs(downloader)
        self.serve(place)
        self.assert_gets(downloader, torrent, 120)

    def test_a_tracker_that_is_named_on_the_command_line(self):
        tracker = self.serve()
        url = f"udp://127.0.0.1:{tracker.place.udp}"
        torrent = Torrent(self.id(), MIB, is_private=False)
        self.seed(torrent, "--announce", url, trackers=())
        for number, source in enumerate((torrent.info_hash.hex(), torrent.magnet())):
            downloader = self.get(torrent, (), "--announce", url, trackers=(), source=source,
                                  folder=self.folder(f"by-{number}"))
            self.assert_gets(downloader, torrent)

    def test_the_tracker_is_told_of_the_end(self):
        """Started, completed once, stopped: nobody is left in the swarm."""
        tracker = self.serve()
        torrent = Torrent(self.id(), MIB)
        source = self.torrent_file(torrent, f"udp://127.0.0.1:{tracker.place.udp}")
        seeder = self.seed(torrent, source=source, trackers=())
        asker = self.client(tracker)

        def counts():
            swarm, = asker.scrape(torrent.info_hash)
            return swarm.seeders, swarm.completed, swarm.leechers
        wait_until(lambda: counts() == (1, 0, 0), 30, lambda: f"a seeder: {counts()}")
        downloader = self.get(torrent, source=source, trackers=())
        self.assert_gets(downloader, torrent)
        wait_until(lambda: counts() == (1, 1, 0), 30, lambda: f"it has all, and has left: {counts()}")
        again = self.get(torrent, source=source, trackers=())
        self.assert_gets(again, torrent)
        seeder.signal(signal.SIGINT)
        self.assertIn(seeder.wait(30), (0, 130), seeder.words)
        wait_until(lambda: counts() == (0, 1, 0), 30, lambda: f"nobody is left: {counts()}")


class Failover(unittest.TestCase):

    def test_the_master_is_killed_during_a_download_and_a_new_leecher_joins(self):
        with cluster.Cluster("multicast") as trackers:
            torrent = Torrent(self.id(), 24 * MIB)
            seeder = self.start(trackers, torrent, seeds=True)
            scraper = trackers.client(trackers.members[0])

            def swarm():
                return scraper.scrape(torrent.info_hash)[0]
            self.wait_for(lambda: seeder.is_complete() and swarm().seeders == 1, swarm)
            first = self.start(trackers, torrent, rate=SLOW)
            self.wait_for(lambda: swarm().leechers == 1, swarm)
            self.assertIsNone(first.process.status, "it was too fast to be watched")
            trackers.master().kill()
            newcomer = self.start(trackers, torrent)
            self.wait_for(lambda: all([first.is_complete(), newcomer.is_complete()]), swarm)
            for client in (first, newcomer):
                self.assertEqual(client.sha256(), torrent.sha256)
            self.wait_for(lambda: (swarm().seeders, swarm().completed, swarm().leechers) == (1, 2, 0), swarm)

    def start(self, trackers, torrent, seeds=False, rate=UNLIMITED):
        host = trackers.host(f"peer-{len(trackers.network.hosts)}")
        urls = [f"udp://{trackers.door(member)}:{PORT}/announce" for member in trackers.members]
        return Swarmkeeper(host, trackers.directory / host.name, torrent, urls, seeds, rate=rate)

    def wait_for(self, condition, swarm):
        cluster.wait_until(condition, 90, lambda: f"{swarm()}")


class Disks(PeerTest):

    def test_a_file_that_was_cut_off_at_the_seeder_is_told_of(self):
        """A piece that has gone is rejected (BEP 6) and taken back (BEP 54); the others go on (P5)."""
        torrent = Torrent(self.id(), 40 * 65_536, is_private=False)
        seeder = self.seed(torrent)
        wire = self.enterContext(Wire.dial(seeder.port))
        wire.greet(torrent.info_hash)
        wire.say(raw_peer.HAVE_NONE)
        wire.say_extensions({"lt_donthave": 9})
        wire.say(INTERESTED)
        wire.expect(UNCHOKE, 60)
        os.truncate(seeder.folder / torrent.name, 20 * 65_536)
        wire.request(30, 0, BLOCK)
        self.assertEqual(wire.expect(REJECT), struct.pack("!III", 30, 0, BLOCK))
        gone = raw_peer.frame(EXTENDED, b"\x09" + struct.pack("!I", 30))[4:]
        wait_until(lambda: wire.listen(0.1) is None or (gone[0], gone[1:]) in wire.seen, 10,
                   lambda: f"don't-have of piece 30; heard {wire.heard()}")
        self.assertEqual(wire.fetch(3, 0, BLOCK), torrent.piece(3)[:BLOCK])
        self.assertNotIn(30, [struct.unpack("!I", payload[:4])[0] for number, payload in wire.seen if number == PIECE])
        self.assert_runs(seeder)

    def test_a_file_that_has_changed_at_the_seeder_is_not_offered_at_the_next_start(self):
        torrent = Torrent(self.id(), 40 * 65_536, is_private=False)
        folder = self.folder("seeder")
        torrent.write(folder)
        flip(folder / torrent.name, 5 * 65_536 + 7)
        seeder = self.program("seed", self.torrent_file(torrent), "--path", folder, "--listen",
                              f"127.0.0.1:{(port := serving.free_port())}", "--no-tracker")

        def offered():
            if seeder.status is not None:
                return {"nothing, for it has ended"}
            with Wire.dial(port) as wire:
                try:
                    wire.greet(torrent.info_hash)
                    wire.listen(0.5)
                except (raw_peer.Closed, raw_peer.Silent):
                    return None
            for number, payload in wire.seen:
                if number == raw_peer.HAVE_ALL:
                    raise AssertionError("it offers a piece that is wrong")
                if number == raw_peer.BITFIELD:
                    return {index for index in range(40) if not payload[index // 8] & 0x80 >> index % 8}
        missing = wait_until(offered, 30, "it says what it has")
        self.assertIn(missing, ({5}, {"nothing, for it has ended"}))

    def test_a_full_disk_is_waited_for(self):
        """It says so, keeps what it has, and goes on when there is room (P8)."""
        torrent = Torrent(self.id(), 12 * MIB)
        with serving.mounted(self.directory / "small", "size=6m") as small, Seeder(torrent) as seeder:
            program = self.get(torrent, [seeder], folder=small)
            try:
                wait_until(lambda: program.status is not None or "space" in said(program).lower()
                           or "full" in said(program).lower(), 30, lambda: f"it says so:\n{said(program)}")
                self.assert_runs(program)
                time.sleep(2)  # Nothing is to happen: there is nothing to wait for.
                self.assert_runs(program)
                serving.remount(small, "size=64m")
                self.assert_gets(program, torrent, 120)
            finally:
                if program.status is None:
                    program.kill()

    def test_a_full_disk_is_no_reason_to_wait_for_ever(self):
        torrent = Torrent(self.id(), 12 * MIB)
        with serving.mounted(self.directory / "small", "size=6m") as small, Seeder(torrent) as seeder:
            program = self.get(torrent, [seeder], "--give-up-after", "5s", folder=small)
            self.assertIn(program.wait(60), (GIVEN_UP, DISK), program.words)

    def test_a_directory_that_cannot_be_written(self):
        torrent = Torrent(self.id(), MIB)
        with serving.mounted(self.directory / "fixed", "size=6m") as fixed, Seeder(torrent) as seeder:
            serving.remount(fixed, "ro")
            program = self.get(torrent, [seeder], "--give-up-after", "10s", folder=fixed)
            self.assertIn(program.wait(60), (GIVEN_UP, DISK), program.words)
            self.assertIn("read-only", program.words.lower())
            self.assertEqual(list(fixed.iterdir()), [])

    def test_memory_is_bounded_while_the_disk_takes_nothing(self):
        torrent = Torrent(self.id(), 200 * MIB, piece_length=MIB)
        with serving.mounted(self.directory / "small", "size=8m") as small, Seeder(torrent) as seeder:
            program = self.get(torrent, [seeder], folder=small)
            wait_until(lambda: len(seeder.requests) * BLOCK > 16 * MIB, 60, "it asks for more than fits")
            counts = []

            def is_still():
                counts.append(len(seeder.requests))
                time.sleep(0.5)
                return len(counts) > 6 and counts[-1] == counts[-6]
            wait_until(is_still, 60, "it asks for nothing any more")
            self.assert_runs(program)
            self.assertLess(program.memory()[1], 200 * MIB)
            program.kill()


class Restarts(PeerTest):

    def test_after_kill_9_it_goes_on_with_what_is_right_on_the_disk(self):
        """What was verified is not fetched again; a byte that was flipped meanwhile is found (P9)."""
        torrent = Torrent(self.id(), 16 * MIB)
        with Measured(torrent) as seeder:
            program = self.get(torrent, [seeder])
            wait_until(lambda: len(seeder.requests) > 300, 60, "some of it has come")
            program.kill()
            written = self.right_pieces(torrent, program.folder, unfinished=2)
            self.assertGreater(len(written), 10)
            spoiled = min(written)
            flip(program.folder / torrent.name, spoiled * torrent.piece_length + 99)
            before = len(seeder.requests)
            program = self.get(torrent, [seeder])
            self.assert_gets(program, torrent)
            asked = {piece for piece, _, _ in seeder.requests[before:]}
        self.assertIn(spoiled, asked)
        again = len(asked & (written - {spoiled}))
        # The last ones before the end may not have been noted yet.
        self.assertLessEqual(again, len(written) // 2, "most of what is right is not fetched again")

    def test_after_ctrl_c_it_goes_on(self):
        torrent = Torrent(self.id(), 16 * MIB)
        with Measured(torrent) as seeder:
            program = self.get(torrent, [seeder])
            wait_until(lambda: len(seeder.requests) > 300, 60, "some of it has come")
            program.signal(signal.SIGINT)
            self.assertEqual(program.wait(30), 130, program.words)
            written, before = self.right_pieces(torrent, program.folder), len(seeder.requests)
            self.assertGreater(len(written), 10)
            self.assert_gets(self.get(torrent, [seeder]), torrent)
            asked = {piece for piece, _, _ in seeder.requests[before:]}
        self.assertEqual(asked & written, set())

    def test_files_that_are_there_already_are_used(self):
        """Of another program, with a piece that is wrong and a file that is missing."""
        files = {("a",): 5 * 65_536 + 100, ("sub", "b"): 300_000, ("c",): 0, ("d",): 70_000}
        torrent = Torrent(self.id(), files=files)
        folder = self.folder("downloader")
        torrent.write(folder)
        flip(folder / torrent.name / "a", 65_536 + 3)
        (folder / torrent.name / "d").unlink()
        with Seeder(torrent) as seeder:
            self.assert_gets(self.get(torrent, [seeder]), torrent)
            asked = {piece for piece, _, _ in seeder.requests}
        first = (5 * 65_536 + 100 + 300_000) // 65_536
        self.assertEqual(asked, {1, *range(first, len(torrent.hashes))})

    def test_what_is_whole_is_not_fetched(self):
        torrent = Torrent(self.id(), MIB)
        folder = self.folder("downloader")
        torrent.write(folder)
        program = self.get(torrent)
        self.assert_gets(program, torrent)

    def test_verify_says_what_is_wrong(self):
        torrent = Torrent(self.id(), MIB)
        folder = self.folder("copy")
        torrent.write(folder)
        file, path = self.torrent_file(torrent), folder / torrent.name
        self.assertEqual(self.run_program("torrent", "verify", file, folder).status, 0)
        flip(path, 70_000)
        self.assertEqual(self.run_program("torrent", "verify", file, folder).status, 1)
        flip(path, 70_000)
        self.assertEqual(self.run_program("torrent", "verify", file, folder).status, 0)
        os.truncate(path, MIB - 1)
        self.assertEqual(self.run_program("torrent", "verify", file, folder).status, 1)
        path.unlink()
        self.assertEqual(self.run_program("torrent", "verify", file, folder).status, 1)

    def right_pieces(self, torrent, folder, unfinished=0):
        """The pieces that are on the disk as they should be; all others are zero, or not there.

        But for so many that were being written: `kill -9` ends a write after any page.
        """
        right, wrong = set(), []
        data = (folder / torrent.name).read_bytes()
        for index in range(len(torrent.hashes)):
            piece = data[index * torrent.piece_length:(index + 1) * torrent.piece_length]
            if piece == torrent.piece(index):
                right.add(index)
            elif piece.strip(b"\0"):
                wrong.append(index)
        self.assertLessEqual(len(wrong), unfinished, f"pieces {wrong} are neither right nor unwritten")
        return right


def has_some(program, torrent):
    """Whether some of it is on the disk and some is not; the program must still be running."""
    assert program.status is None, f"the program ended with status {program.status}:\n{program.words}"
    try:
        with open(program.folder / torrent.name, "rb") as file:
            return os.lseek(file.fileno(), 0, os.SEEK_DATA) >= 0
    except OSError:  # Not there, or nothing but room that was kept for it.
        return False


def said(program):
    """What a running program has said to people; what it tells programs is read at its end."""
    return program.words


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0xFF]))


if __name__ == "__main__":
    unittest.main()
