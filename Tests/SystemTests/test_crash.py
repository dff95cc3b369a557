"""What was answered is kept over a crash; an orderly stop is quick and clean."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import sqlite3
import struct
import threading
import time
import unittest

import bep15
from crowd import Crowd
from serving import TrackerTest, require_tracker, wait_until

setUpModule = require_tracker


CHUNKS = 1_024
"""Of a snapshot."""


def quiet_node(tracker):
    """The node's status once nothing waits and all is applied."""
    def look():
        node = tracker.node()
        return node if node["waitingRequests"] == 0 and node["commitIndex"] == node["lastIndex"] else None
    return wait_until(look, 10, "the tracker is at rest")


class Crash(TrackerTest):
    is_heavy = True

    def crowd(self, tracker, **options):
        return self.stack.enter_context(Crowd(tracker.place.udp, **options))

    def load(self, tracker, *arguments):
        return self.program("load", f"udp://127.0.0.1:{tracker.place.udp}", "--seconds", "600", "--json", *arguments)

    def kill_under_load(self, *flags, rounds):
        """Kills it again and again, at odd moments, under the crowd's announces and the generator's."""
        place = self.place()
        tracker = self.serve(place, *flags)
        crowd = self.crowd(tracker, swarms=40, peers_each=150, seed=len(flags))
        for number in range(rounds):
            load = self.load(tracker, "--seed", number, "--in-flight", 64, "--warm-up", 0)
            client = self.client(tracker)
            crowd.announce(client, 0.3 + 0.17 * number)
            crowd.announce(client, 120, until=lambda: crowd.answers > 1_000 * (number + 1))
            tracker.kill()
            load.kill()
            crowd.forget()
            tracker = self.serve(place, *flags)
            self.assertNotIn("error", tracker.words)
            crowd.check(self.client(tracker))
        self.assertGreater(crowd.answers, 1_000 * rounds)
        self.assertEqual(crowd.refusals, 0)

    def test_kill_under_load_loses_nothing_that_was_answered(self):
        self.kill_under_load("--durability", "disk", rounds=4)

    def test_kill_under_load_with_durability_process_loses_nothing_either(self):
        self.kill_under_load("--durability", "process", rounds=4)

    def test_kill_while_the_record_is_read_back(self):
        place = self.place()
        tracker = self.serve(place, "--durability", "process")
        crowd = self.crowd(tracker, swarms=40, peers_each=150, seed=7)
        load = self.load(tracker, "--in-flight", 512, "--warm-up", 0)
        crowd.announce(self.client(tracker), 2)
        tracker.kill()
        load.kill()
        crowd.forget()
        for delay in (0.0, 0.01, 0.02, 0.05, 0.1, 0.15):
            tracker = self.start(place)
            time.sleep(delay)
            tracker.kill()
        crowd.check(self.client(self.serve(place)))

    def test_kill_during_snapshots_loses_nothing(self):
        place = self.place()
        tracker = self.serve(place, "--durability", "process")
        crowd = self.crowd(tracker, swarms=40, peers_each=150, seed=3)
        for share in (0.1, 0.6):
            for attempt in range(10):
                saved = self.kill_during_a_snapshot(tracker, crowd, share, seed=attempt)
                with self.subTest(chunks=saved):
                    tracker = self.serve(place, "--durability", "process")
                    crowd.check(self.client(tracker))
                if saved < CHUNKS:
                    break
            self.assertLess(saved, CHUNKS, "it was never killed within a snapshot")
        self.check_that_a_missing_chunk_is_noticed(tracker)

    def kill_during_a_snapshot(self, tracker, crowd, share, seed):
        """Returns how many chunks were saved: all, where a busy machine let us look too late."""
        place = tracker.place
        # A snapshot begins when the log has grown by 32 MiB: half a million announces.
        load = self.load(tracker, "--in-flight", 2_048, "--warm-up", 0, "--torrents", 20_000, "--num-want", 1,
                         "--seed", seed)
        [(last,)] = place.rows("SELECT ifnull(max(idx), 0) FROM snapshot")
        wait_until(lambda: tracker.node()["counters"]["updates"] > 400_000, 60, "most of that")
        self.assertTrue(crowd.announce(self.client(tracker), 300, until=lambda: place.rows(
            "SELECT count(*) > ? FROM snapshot WHERE idx > ?", share * CHUNKS, last) == [(1,)]), "a snapshot begins")
        tracker.kill()
        load.kill()
        crowd.forget()
        [(saved,)] = place.rows("SELECT count(*) FROM snapshot WHERE idx > ?", last)
        return saved

    def check_that_a_missing_chunk_is_noticed(self, tracker):
        # Here, because here there is a snapshot at hand.
        place = tracker.place
        tracker.kill()
        with contextlib.closing(sqlite3.connect(place.database)) as database:
            database.execute("DELETE FROM snapshot WHERE number = (SELECT max(number) FROM snapshot)")
            database.commit()
        with self.subTest("a chunk of the snapshot is missing"):
            tracker = self.start(place)
            wait_until(lambda: tracker.status is not None or tracker.is_serving(), 10, "it serves or ends")
            self.assertEqual(tracker.status, 74, "it must not serve with holes")
            self.assertIn("damaged", tracker.words)

    def test_the_digest_is_the_same_after_a_crash(self):
        place = self.place()
        tracker = self.serve(place)
        crowd = self.crowd(tracker, swarms=30, peers_each=50, seed=5)
        client = self.client(tracker)
        crowd.announce(client, 1)
        crowd.settle(client)
        before = quiet_node(tracker)
        tracker.kill()
        tracker = self.serve(place)
        after = quiet_node(tracker)
        for key in ("digest", "torrents", "peers", "seeders"):
            self.assertEqual(after[key], before[key], key)
        # The client's connection id is still good: nobody has to connect again after a restart.
        self.assertEqual(client.scrape(*crowd.info_hashes[:2]), self.client(tracker).scrape(*crowd.info_hashes[:2]))


class Stop(TrackerTest):

    def announce_some(self, tracker):
        client = self.client(tracker)
        for number in range(20):
            client.announce(bytes([number]) * 20, 7_000, left=number % 2)
        return client

    def hashes(self):
        return [bytes([number]) * 20 for number in range(20)]

    def test_a_clean_stop_leaves_no_swarm(self):
        place = self.place()
        tracker = self.serve(place)
        self.announce_some(tracker)
        self.assertNotIn(bep15.Scraped(0, 0, 0), self.client(tracker).scrape(*self.hashes()))
        tracker.stop()
        for table in ("swarms", "peers", "SWARM", "PEER"):
            self.assertEqual(place.rows(f"SELECT count(*) FROM {table}"), [(0,)], table)
        tracker = self.serve(place)
        self.assertEqual(set(self.client(tracker).scrape(*self.hashes())), {bep15.Scraped(0, 0, 0)})
        self.assertEqual(tracker.node()["peers"], 0)

    def test_with_keep_swarms_an_orderly_stop_keeps_everything(self):
        place = self.place()
        tracker = self.serve(place, "--keep-swarms")
        # The first entry is the interval that clients are told: a part of the state that the digest is of.
        wait_until(lambda: tracker.node()["commitIndex"] > 0, 10, "the interval is decided")
        self.announce_some(tracker)
        before, counts = quiet_node(tracker)["digest"], self.client(tracker).scrape(*self.hashes())
        tracker.stop()
        tracker = self.serve(place, "--keep-swarms")
        self.assertEqual(self.client(tracker).scrape(*self.hashes()), counts)
        self.assertEqual(quiet_node(tracker)["digest"], before)

    def test_a_crash_after_a_clean_stop_has_only_what_came_later(self):
        place = self.place()
        tracker = self.serve(place)
        self.announce_some(tracker)
        tracker.stop()
        tracker = self.serve(place)
        self.client(tracker).announce(bytes(20), 7_000, left=0)
        tracker.kill()
        scraped = self.client(self.serve(place)).scrape(*self.hashes())
        self.assertEqual(scraped, [bep15.Scraped(1, 0, 0)] + [bep15.Scraped(0, 0, 0)] * 19)

    def test_sigterm_and_sigint_stop_it_soon(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(signal=number.name):
                tracker = self.serve()
                self.announce_some(tracker)
                tracker.stop(number)
                self.assertTrue(tracker.place.is_free(), "nothing is left listening")

    def test_signals_are_heard_from_the_first_line_of_the_log_on(self):
        """By process 1 of a container, too, which hears nothing that it has not asked for."""
        for wrapper in [(), ("unshare", "--fork", "--pid", "--kill-child")]:
            for first in (None, signal.SIGHUP, signal.SIGUSR1):
                with self.subTest(wrapper=wrapper[:1], first=first):
                    tracker = self.start(self.place(), wrapper=wrapper)
                    wait_until(lambda: tracker.words, 20, "it says something")
                    pid = tracker.pid
                    if wrapper:
                        pid = int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text())
                    if first is not None:
                        os.kill(pid, first)
                    os.kill(pid, signal.SIGTERM)
                    self.assertEqual(tracker.wait(20), 0, tracker.words)

    def test_stops_soon_with_open_connections(self):
        tracker = self.serve()
        # One that has been answered and is kept alive, one that says nothing, one in the middle of a request.
        for port, path in [(tracker.place.http, "/scrape?info_hash=" + "a" * 20), (tracker.place.console, "/healthz")]:
            alive = http.client.HTTPConnection("127.0.0.1", port)
            self.addCleanup(alive.close)
            alive.request("GET", path)
            self.assertEqual(alive.getresponse().read(0), b"")
            for words in (b"", b"GET /announce?info_ha"):
                one = self.stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                one.sendall(words)
        tracker.stop()
        self.assertTrue(tracker.place.is_free(), "nothing is left listening")

    def test_stops_soon_under_load(self):
        tracker = self.serve()
        load = self.program("load", f"udp://127.0.0.1:{tracker.place.udp}", "--seconds", 600, "--in-flight", 4_096)
        wait_until(lambda: tracker.node()["counters"]["announces"] > 20_000, 20, "the load is on")
        tracker.stop()
        load.kill()
        self.assertTrue(tracker.place.is_free(), "nothing is left listening")
        self.assertEqual(tracker.place.rows("SELECT count(*) FROM peers"), [(0,)])

    def test_stops_soon_with_a_hundred_thousand_peers(self):
        tracker = self.serve(None, "--durability", "process")
        fill = self.run_program("load", f"udp://127.0.0.1:{tracker.place.udp}", "--fill", "--torrents", 100_000,
                                "--peers", 100_000, "--json", within=60)
        self.assertEqual(fill.status, 0, fill.words)
        tracker.stop()

    def test_what_waits_at_the_stop_is_answered_or_not_there(self):
        """An announce that is answered while the tracker stops is kept; `--keep-swarms` shows it."""
        place = self.place()
        tracker = self.serve(place, "--keep-swarms")
        crowd = self.stack.enter_context(Crowd(place.udp, swarms=20, peers_each=150, seed=11))
        stop = threading.Timer(0.5, lambda: tracker.signal(signal.SIGTERM))
        stop.start()
        crowd.announce(self.client(tracker), 60, until=lambda: tracker.status is not None)
        stop.join()
        self.assertEqual(tracker.wait(5), 0)
        crowd.forget()
        crowd.check(self.client(self.serve(place, "--keep-swarms")))


class Reload(TrackerTest):

    ALLOWED, NEW = b"a" * 20, b"b" * 20

    def setUp(self):
        self.list = self.directory / "allowed.txt"
        self.list.write_text(f"# what we serve\n{self.ALLOWED.hex()}\n")
        self.tracker = self.serve(None, "--access", "allow", "--access-list", self.list)
        self.peer = self.client(self.tracker)

    def hang_up(self, words):
        said = len(self.tracker.words)
        self.tracker.signal(signal.SIGHUP)
        wait_until(lambda: words in self.tracker.words[said:], 5, lambda: f"the log says: {words}")
        return self.tracker.words[said:]

    def assertRefused(self, info_hash):
        with self.assertRaisesRegex(bep15.TrackerError, "list"):
            self.peer.announce(info_hash, 7_000, left=1)

    def test_sighup_reads_the_list_again(self):
        self.peer.announce(self.ALLOWED, 7_000, left=1)
        self.assertRefused(self.NEW)
        self.list.write_text(f"{self.NEW.hex()}\n")
        self.hang_up("access rules are in force")
        self.peer.announce(self.NEW, 7_000, left=1)
        self.assertRefused(self.ALLOWED)

    def test_a_broken_list_changes_nothing_and_is_told_with_its_line(self):
        self.list.write_text(f"{self.NEW.hex()}\nnot an info hash\n{self.ALLOWED.hex()[:39]}\n")
        words = self.hang_up("are kept")
        self.assertIn(f"{self.list}:2", words)
        self.assertIn(f"{self.list}:3", words)
        self.peer.announce(self.ALLOWED, 7_000, left=1)
        self.assertRefused(self.NEW)
        self.list.unlink()
        self.assertIn(str(self.list), self.hang_up("are kept"))
        self.assertRefused(self.NEW)

    def test_rules_are_in_force_before_anybody_is_served(self):
        """Also where the record's rules were others, and its clients still have their connection ids."""
        place = self.place()
        for attempt in range(3):
            with self.subTest(attempt=attempt):
                tracker = self.serve(place)  # Open to all.
                peer = self.client(tracker)
                request = bep15.announce_request(peer.connect(), 1, self.NEW, peer.peer_id, 7_001, left=1)
                tracker.kill()
                tracker = self.start(place, "--access", "allow", "--access-list", self.list)
                replies = self.answers_to_a_stream(tracker, request)
                tracker.kill()
                accepted = [reply for reply in replies if reply[:4] != struct.pack("!I", bep15.Action.ERROR)]
                self.assertEqual(len(accepted), 0, f"of {len(replies)} announces that are not allowed")

    def answers_to_a_stream(self, tracker, request):
        """Asks without a pause until shortly after the tracker has begun to answer."""
        replies, end = [], time.monotonic() + 60
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stream:
            stream.connect(("127.0.0.1", tracker.place.udp))
            stream.setblocking(False)
            while time.monotonic() < end:
                with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
                    stream.send(request)
                with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
                    replies.append(stream.recv(2_048))
                    end = min(end, time.monotonic() + 0.2)
        self.assertNotEqual(replies, [], "it answers in the end")
        return replies


class Addresses(TrackerTest):

    def test_wildcard_sockets_answer_from_the_address_asked(self):
        place = self.place()
        place.udp_host = "0.0.0.0"
        tracker = self.serve(place, "--udp", f"[::]:{place.udp}")
        for address in ("127.0.0.1", "127.0.0.2", "127.7.6.5", "::1"):
            # The client's socket is connected: a reply from anywhere else is not seen.
            self.client(tracker, address).announce(b"w" * 20, 7_000, left=1)


class Views(TrackerTest):

    def test_the_classic_views_show_the_swarms_while_the_tracker_runs(self):
        """After a snapshot: every ten minutes, or here after 32 MiB of log."""
        place, torrents = self.place(), self.directory / "torrents"
        torrents.mkdir()
        created = self.run_program("torrent", "create", __file__, "--output", torrents / "test.torrent", "--json")
        tracker = self.serve(place, "--durability", "process", "--torrents", torrents)
        info_hash = bytes.fromhex(json.loads(created.output)["infoHash"])
        client = self.client(tracker)
        client.announce(info_hash, 7_001, left=0, event=bep15.Event.STARTED)
        client.announce(info_hash, 7_002, left=100, downloaded=23, event=bep15.Event.STARTED)
        load = self.program("load", f"udp://127.0.0.1:{place.udp}", "--seconds", 600, "--torrents", 200,
                            "--peers", 2_000, "--num-want", 1, "--in-flight", 2_048)
        ours = "SELECT address, port, downloaded, left FROM PEER_INFO WHERE info_hash = ? ORDER BY port"
        wait_until(lambda: len(place.rows(ours, info_hash.hex())) == 2, 60,
                   lambda: f"rows of a peer; counters {tracker.node()['counters']}, "
                           f"tabled {place.rows('SELECT count(*) FROM tabled')}")
        load.kill()
        self.assertEqual(place.rows(ours, info_hash.hex()), [("127.0.0.1", 7_001, 0, 0), ("127.0.0.1", 7_002, 23, 100)])
        name, size = pathlib.Path(__file__).name, pathlib.Path(__file__).stat().st_size
        wait_until(lambda: place.rows("SELECT * FROM CONTENTS"), 10, "the registered torrent")
        self.assertEqual(place.rows("SELECT info_hash, name, size FROM CONTENTS"), [(info_hash.hex(), name, size)])
        self.assertEqual(
            place.rows("SELECT name, size, seeders, leechers, completed FROM SWARM WHERE info_hash = ?", info_hash.hex()),
            [(name, size, 1, 1, 0)])
        self.assertEqual(
            place.rows("SELECT address, port, role FROM SWARM_PEERS WHERE info_hash = ? ORDER BY port", info_hash.hex()),
            [("127.0.0.1", 7_001, "seeder"), ("127.0.0.1", 7_002, "leecher")])
        self.assertEqual(
            place.rows("SELECT port, swarms FROM PEER WHERE peer_id = ? ORDER BY port", client.peer_id.hex()),
            [(7_001, 1), (7_002, 1)])
        wait_until(lambda: place.rows("SELECT count(*) FROM SWARM") >= [(200,)], 20, "rows of all swarms")
        self.client(tracker).announce(info_hash, 7_003, left=1)  # It serves all the while.


if __name__ == "__main__":
    unittest.main()
