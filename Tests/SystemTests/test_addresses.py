"""What one address may take from all others: a flood of new peers, and a NAT with many honest ones."""

import json

import bep15
from serving import TrackerTest, require_tracker

setUpModule = require_tracker

LIMIT = 2_000


class Addresses(TrackerTest):

    def fill(self, tracker, peers, sources, *arguments):
        load = self.run_program("load", f"udp://127.0.0.1:{tracker.place.udp}", "--fill", "--torrents", 10, "--peers",
                                peers, "--sources", sources, "--json", "--seconds", 60, *arguments, within=80)
        self.assertEqual(load.status, 0, load.words)
        return json.loads(load.output)

    def test_a_flood_from_one_address_leaves_room_for_all_others(self):
        tracker = self.serve(None, "--limit-peers-per-address", LIMIT, "--limit-errors", "1M", "--durability", "process",
                             "--limit-updates", 500)
        report = self.fill(tracker, 20_000, 1)
        self.assertIn("too many peers from your address", report["firstError"])
        held = tracker.node()["peers"]
        self.assertGreaterEqual(held, LIMIT)
        # What is on its way into the log is not held against the bound: two entries.
        self.assertLessEqual(held, LIMIT + 1_000)
        # All of 127.1.0.0/16 comes, as if nothing were.
        report = self.fill(tracker, 20_000, 64, "--seed", 2)
        self.assertEqual(report["errors"], 0, report)
        self.assertEqual(tracker.node()["peers"], held + 20_000)

    def test_a_thousand_honest_peers_behind_one_address(self):
        tracker = self.serve(None, "--durability", "process")
        client = self.client(tracker)
        client.connect()
        report = self.fill(tracker, 10_000, 1)
        self.assertEqual(report["errors"], 0, report)
        self.assertEqual(tracker.node()["peers"], 10_000)

    def test_more_than_a_nat_has_is_refused_with_a_reason(self):
        tracker = self.serve(None, "--limit-peers-per-address", 3)
        client = self.client(tracker)
        for port in range(7_000, 7_003):
            client.announce(b"a" * 20, port, left=1)
        with self.assertRaisesRegex(bep15.TrackerError, "too many peers from your address"):
            client.announce(b"a" * 20, 7_003, left=1)
        self.assertEqual(len(client.announce(b"a" * 20, 7_002, left=0).peers), 2)
