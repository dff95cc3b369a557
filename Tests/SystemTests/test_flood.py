"""Strangers who send what they like: memory stays bounded, real peers are served meanwhile."""

import contextlib
import json
import pathlib
import random
import signal
import socket
import struct
import sys
import time
import unittest

import bep15
import flood
from serving import LONG, Program, TrackerTest, require_tracker, wait_until

setUpModule = require_tracker

MIB = 1 << 20
TALKATIVE = ("--durability", "process", "--limit-errors", "1M")
"""All refusals of a fill come from few addresses, and are to be told, not withheld: else it would ask again."""


class Floods(TrackerTest):
    is_heavy = True

    def flood(self, tracker, kind, seed=1):
        program = Program([sys.executable, pathlib.Path(flood.__file__), tracker.place.udp, kind, seed],
                          self.directory / f"flood-{len(self.programs)}.log")
        self.programs.append(program)
        return program

    def test_floods_of_junk_and_of_forged_sources(self):
        tracker = self.serve()
        client = self.client(tracker, timeout=0.1, tries=1_000)
        client.connect()
        _, before = tracker.memory()
        for number, kind in enumerate(flood.KINDS):
            with self.subTest(kind=kind):
                counters, info_hash, announces = tracker.node()["counters"], bytes([number]) * 20, 0
                running, begin, got = self.flood(tracker, kind), time.monotonic(), 0
                # Real announces are answered while the flood comes.
                while announces <= 10 or got <= 10_000 or time.monotonic() - begin < 2:
                    peers = client.announce(info_hash, 7_000 + announces, left=1).peers
                    self.assertEqual(len(peers), min(announces, 50))
                    announces += 1
                    if announces % 10 == 0:
                        now = tracker.node()["counters"]
                        got = sum(now[key] - counters[key]
                                  for key in ("ignored", "errors", "errorsWithheld", "connects"))
                self.assertIsNone(running.status, "the flood goes on until it is told to end")
                running.signal(signal.SIGTERM)
                self.assertEqual(running.wait(20), 0, running.words)
                self.assertGreaterEqual(int(running.output), 10_000)
                _, peak = tracker.memory()
                # The ring of the recording is a file, and is in memory as it is written.
                self.assertLess(peak - before, (64 + 32) * MIB, "memory is bounded")
                node = tracker.node()
                self.assertEqual(node["torrents"], number + 1, "nothing of it got in")
        tracker.stop()

    def test_errors_to_one_address_are_few_and_short(self):
        tracker = self.serve()
        draw, errors, sizes, start = random.Random(8), [], {}, time.monotonic()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as victim:
            victim.connect(("127.0.0.1", tracker.place.udp))
            victim.setblocking(False)
            for number in range(20_000):
                request = flood.forged(draw)
                sizes[request[12:16]] = len(request)
                victim.send(request)
                try:
                    errors.append(victim.recv(2_048))
                except BlockingIOError:
                    pass
            took = time.monotonic() - start
            time.sleep(0.1)
            try:
                while True:
                    errors.append(victim.recv(2_048))
            except BlockingIOError:
                pass
        for error in errors:
            self.assertEqual(struct.unpack("!I", error[:4]), (bep15.Action.ERROR,))
            self.assertLessEqual(len(error), sizes[error[4:8]], "no larger than what was asked")
        self.assertGreater(len(errors), 0)
        self.assertLessEqual(len(errors), 10 * (int(took + 0.1) + 2), f"errors in {took:.1f} s")
        # Another address has an allowance of its own.
        with self.assertRaises(bep15.TrackerError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind(("127.0.0.9", 0))
            other.connect(("127.0.0.1", tracker.place.udp))
            other.settimeout(2)
            request = flood.forged(draw)
            bep15.body(self.ask(other, request), None, int.from_bytes(request[12:16], "big"))

    def ask(self, socket, request):
        """The first answer: what the kernel has thrown away is asked again."""
        for _ in range(30):
            socket.send(request)
            with contextlib.suppress(TimeoutError):
                return socket.recv(2_048)
        raise AssertionError("no answer")

    def test_source_port_0_gets_silence(self):
        tracker = self.serve()
        before = tracker.node()["counters"]
        with flood.Forger(tracker.place.udp) as forger:
            for number in range(10):
                forger.send(("127.0.0.1", 0), bep15.connect_request(number))
        wait_until(lambda: tracker.node()["counters"]["ignored"] >= before["ignored"] + 10, 5, "ten more are ignored")
        self.assertEqual(tracker.node()["counters"]["connects"], before["connects"])

    def test_a_connection_id_is_good_for_its_address_only(self):
        tracker = self.serve()
        connection = self.client(tracker).connect()
        with flood.Forger(tracker.place.udp) as forger:
            for number in range(100):
                forger.send((f"127.0.1.{number + 1}", 6_881), bep15.announce_request(
                    connection, number, b"f" * 20, bytes(20), 6_881, left=1))
        self.assertEqual(self.client(tracker).scrape(b"f" * 20), [bep15.Scraped(0, 0, 0)])
        self.assertEqual(tracker.node()["peers"], 0)


class Tables(TrackerTest):
    is_heavy = True


    def fill(self, tracker, torrents, peers, *arguments, within):
        """Announces each of so many peers once."""
        load = self.run_program("load", f"udp://127.0.0.1:{tracker.place.udp}", "--fill", "--torrents", torrents,
                                "--peers", peers, "--json", "--seconds", within, *arguments, within=within + 10)
        self.assertEqual(load.status, 0, load.words)
        return json.loads(load.output)

    def test_more_info_hashes_than_there_may_be(self):
        limit = 30_000
        tracker = self.serve(None, "--limit-torrents", limit, *TALKATIVE)
        self.check_full(tracker, limit, self.fill(tracker, 60_000, 60_000, within=600), bytes_each=1_000)

    def check_full(self, tracker, limit, report, bytes_each):
        resident, peak = tracker.memory()
        node = tracker.node()
        self.assertGreaterEqual(node["torrents"], limit)
        # Those that were on their way into the log when it became full are in, too: one entry of updates at most.
        self.assertLessEqual(node["torrents"], limit + 8_192)
        self.assertIn("full", report["firstError"])
        self.assertLess(peak, 64 * MIB + limit * bytes_each, "memory is bounded")
        client = self.client(tracker)
        with self.assertRaisesRegex(bep15.TrackerError, "full"):
            client.announce(random.randbytes(20), 7_000, left=1)
        print(f"\n{report['torrents']:,} info hashes, at most {limit:,}: {node['torrents']:,} in the table, "
              f"{report['seconds']:.1f} s, resident {resident / MIB:.0f} MiB, at most {peak / MIB:.0f} MiB",
              file=sys.stderr)

    def test_more_peers_than_there_may_be(self):
        limit = 20_000
        tracker = self.serve(None, "--limit-peers", limit, *TALKATIVE)
        # So many addresses that none of them holds more than its share.
        report = self.fill(tracker, 10, 40_000, "--sources", 4_096, within=600)
        self.assertIn("full", report["firstError"])
        peers = tracker.node()["peers"]
        self.assertGreaterEqual(peers, limit)
        self.assertLessEqual(peers, limit + 8_192)
        self.assertEqual(self.client(tracker).scrape(bytes(20)), [bep15.Scraped(0, 0, 0)])

    def test_one_large_swarm(self):
        self.check_large_swarm(50_000)

    def check_large_swarm(self, count):
        tracker = self.serve(None, "--durability", "process")
        report = self.fill(tracker, 1, count, within=600)
        self.assertEqual(report["errors"], 0, report)
        node = tracker.node()
        self.assertEqual((node["torrents"], node["peers"]), (1, count))
        speed = self.run_program("load", f"udp://127.0.0.1:{tracker.place.udp}", "--filled", "--torrents", 1, "--peers",
                                 count, "--num-want", 200, "--seconds", 2, "--in-flight", 16, "--json", within=30)
        self.assertEqual(speed.status, 0, speed.words)
        figures = json.loads(speed.output)
        self.assertEqual(figures["errors"] + sum(figures["wrong"].values()), 0, figures)
        self.assertGreater(figures["meanPeersPerReply"], 190)
        # On an idle machine it is a hundredth of this.
        self.assertLess(figures["latencyMicroseconds"]["p99"], 2_000_000)
        resident, peak = tracker.memory()
        print(f"\none swarm of {count:,}: filled in {report['seconds']:.1f} s, resident {resident / MIB:.0f} MiB, at most "
              f"{peak / MIB:.0f} MiB; {figures['repliesPerSecond']:,.0f} replies a second of 200 peers each, "
              f"p99 {figures['latencyMicroseconds']['p99'] / 1_000:.1f} ms", file=sys.stderr)
        tracker.stop()

    @unittest.skipUnless(LONG, "takes minutes and gigabytes: SWARMKEEPER_LONG=1")
    def test_ten_million_info_hashes_at_the_default_limit(self):
        tracker = self.serve(None, *TALKATIVE)
        self.check_full(tracker, 4_000_000, self.fill(tracker, 10_000_000, 10_000_000, "--sources", 256, within=1_800),
                        bytes_each=400)

    @unittest.skipUnless(LONG, "takes minutes and gigabytes: SWARMKEEPER_LONG=1")
    def test_ten_million_info_hashes_with_room_for_all(self):
        tracker = self.serve(None, "--durability", "process", "--limit-torrents", 10_000_000)
        report = self.fill(tracker, 10_000_000, 10_000_000, "--sources", 256, within=1_800)
        resident, peak = tracker.memory()
        node = tracker.node()
        self.assertEqual((report["errors"], node["torrents"], node["peers"]), (0, 10_000_000, 10_000_000))
        print(f"\nten million torrents of a peer each: {report['seconds']:.1f} s, resident {resident / MIB:.0f} MiB, "
              f"at most {peak / MIB:.0f} MiB", file=sys.stderr)

    @unittest.skipUnless(LONG, "takes minutes and gigabytes: SWARMKEEPER_LONG=1")
    def test_one_swarm_with_a_million_peers(self):
        self.check_large_swarm(1_000_000)


if __name__ == "__main__":
    unittest.main()
