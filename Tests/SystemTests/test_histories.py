"""Two minutes of real clusters whose clients' histories are checked; `make histories` takes twenty (`histories.py`)."""

import pathlib
import random
import struct
import tempfile
import unittest

import bep15
import check_history
import cluster
import histories
import recorders

setUpModule = cluster.require_cluster


class Histories(unittest.TestCase):

    def over(self, kind, seconds):
        print(flush=True)
        with tempfile.TemporaryDirectory() as directory:
            checks = histories.Checks(pathlib.Path(directory))
            seed = random.randrange(1_000_000)
            print(f"    seed {seed}", flush=True)
            found = histories.run(kind, seed, seconds, checks, say=lambda text: print(f"    {text}", flush=True))
            checks.finish()
            report = histories.Report(checks, *found)
            text = "\n".join(report.lines())
            print(text, flush=True)
            # What is broken is shown with the first history itself: the directory goes.
            for path in checks.kept[:1] if report.broken else []:
                print(path.name, path.read_text(), sep="\n", flush=True)
            self.assertFalse(report.broken, text)
            self.assertLess(report.undecided, len(checks.results) / 2, text)
            self.assertGreater(report.operations, 500, text)

    def test_quorum(self):
        self.over("paxos", 30)

    def test_quorum_in_a_group(self):
        self.over("paxos-group", 20)

    def test_quorum_of_peers_that_fall_silent(self):
        self.over("paxos-expiry", 20)

    def test_survivors(self):
        self.over("classic", 20)

    def test_survivors_in_turn(self):
        self.over("rotating", 20)

    def test_survivors_who_wait_for_all(self):
        self.over("lowest", 20)


class Liar:
    """Alters what trackers say on its way to a client, once all has been well for a while."""

    def __init__(self, kind, seed):
        self.kind, self.random, self.lies = kind, random.Random(seed), 0
        self.past = {}

    def __call__(self, crowd, asker, reply):
        action = struct.unpack_from("!I", reply)[0]
        if crowd.now() < 3 or action not in (bep15.Action.ANNOUNCE, bep15.Action.SCRAPE):
            self._remember(asker, action, reply)
            return reply
        altered = getattr(self, self.kind)(asker, action, reply)
        self.lies += altered != reply
        return altered

    def _remember(self, asker, action, reply):
        if action == bep15.Action.SCRAPE and len(reply) == 20:
            self.past.setdefault(asker, reply[8:])

    def stale_counts(self, asker, action, reply):
        """Scrapes tell what was true in the beginning."""
        if action == bep15.Action.SCRAPE and len(reply) == 20 and asker in self.past:
            return reply[:8] + self.past[asker]
        return reply

    def lost_peers(self, _, action, reply):
        """Of a list, the last is left out, and counted no more."""
        if action == bep15.Action.ANNOUNCE and len(reply) >= 32 and self.random.random() < 0.2:
            head = bytearray(reply[:-6])
            seeders, leechers = struct.unpack_from("!I", head, 16)[0], struct.unpack_from("!I", head, 12)[0]
            if leechers > 1:
                struct.pack_into("!II", head, 12, leechers - 1, seeders)
                return bytes(head)
        return reply

    def made_up_peers(self, _, action, reply):
        """Somebody who never was is told, and counted."""
        if action == bep15.Action.ANNOUNCE and len(reply) >= 26 and self.random.random() < 0.2:
            head = bytearray(reply)
            struct.pack_into("!I", head, 12, struct.unpack_from("!I", head, 12)[0] + 1)
            return bytes(head) + bytes([10, 9, 9, 9, 9, 9])
        return reply

    def too_many_downloads(self, _, action, reply):
        if action == bep15.Action.SCRAPE and len(reply) == 20 and self.random.random() < 0.3:
            seeders, completed, leechers = struct.unpack_from("!III", reply, 8)
            return reply[:8] + struct.pack("!III", seeders, 3 * completed + 40, leechers)
        return reply


class Lies(unittest.TestCase):
    """That a checker finds something: the trackers are well, and somebody between them and the clients lies."""

    def test_each_lie_is_found_and_told(self):
        print(flush=True)
        with histories.Trackers("paxos") as trackers:
            hosts = [trackers.host("clients")]
            # A seed of its own for each: swarms that are there already would be found out first.
            for seed, kind in enumerate(["stale_counts", "lost_peers", "made_up_peers", "too_many_downloads"], 1):
                with self.subTest(kind):
                    liar = Liar(kind, seed)
                    with recorders.Crowd(trackers, hosts, seed, swarms=2, peers_each=5, scrapers=4, liar=liar,
                                         has_ipv6=False) as crowd:
                        crowd.run(5)
                        crowd.end()
                    self.assertGreater(liar.lies, 2)
                    problems = [problem for history in crowd.histories for problem in check_history.judge(history)[0]]
                    print(f"    {kind}: {liar.lies} lies", *problems[:12], sep="\n      ", flush=True)
                    self.assertTrue(problems, f"{liar.lies} lies, and nobody has noticed")

    def test_the_truth_is_not_called_a_lie(self):
        with histories.Trackers("paxos") as trackers:
            with recorders.Crowd(trackers, [trackers.host("clients")], 1, swarms=2, peers_each=5, scrapers=4) as crowd:
                crowd.run(5)
                crowd.end()
        for history in crowd.histories:
            self.assertGreater(len(history.operations), 50)
            self.assertEqual(check_history.judge(history), ([], False))


if __name__ == "__main__":
    unittest.main()
