"""The checkers of histories themselves: small histories that are right and wrong, random ones of a simple swarm, and
the same with a mistake in it. No tracker runs here.
"""

import collections
import copy
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

import forms
import history as records
import linearizability
import shrinking
import survivors
import swarm_model
from history import History, Operation
from steps import peers_of, steps_of

HERE = pathlib.Path(__file__).parent
A, B, C = "10.0.0.1:2001", "10.0.0.2:2002", "10.0.0.3:2003"
BUSY, NOT_STORED = "tracker is busy, try again soon", "tracker could not store the update, try again later"
LOST = "tracker has lost its disk, try another tracker"


def announce(peer, event, call, ret, left=1, told=(0, 1), peers=(), want=200, id=None):
    """`told` are (seeders, leechers); without `ret` nobody answers."""
    answer = {"seeders": told[0], "leechers": told[1], "peers": list(peers), "interval": 1800}
    return Operation("announce", f"client at {peer}", [[call, 1]], [] if ret is None else [[ret, answer]], peer,
                     id or peer, event, left, want)


def start(peer, call, ret, told=(0, 1), peers=(), **more):
    return announce(peer, "started", call, ret, told=told, peers=peers, **more)


def stop(peer, call, ret, told=(0, 0), **more):
    return announce(peer, "stopped", call, ret, told=told, **more)


def complete(peer, call, ret, told=(1, 0), peers=(), **more):
    return announce(peer, "completed", call, ret, left=0, told=told, peers=peers, **more)


def scrape(call, ret, seeders, leechers, completed):
    return Operation("scrape", "a scraper", [[call, 1]],
                     [[ret, {"seeders": seeders, "leechers": leechers, "completed": completed}]])


def refused(operation, text, at):
    operation.replies = [[at, {"error": text}]]
    return operation


def told(*operations, **fields):
    return History("00" * 20, operations=sorted(operations, key=lambda operation: operation.called), **fields)


RIGHT = {
    "nobody asks": [],
    "one after another": [start(A, 1, 2), start(B, 3, 4, (0, 2), [A]), stop(A, 5, 6, (0, 1)), scrape(7, 8, 0, 1, 0)],
    "at once, in either order": [start(A, 1, 4, (0, 2), [B]), start(B, 2, 3, (0, 1), [])],
    "a scrape beside a change sees it": [start(A, 1, 4), scrape(2, 3, 0, 1, 0)],
    "a scrape beside a change does not see it": [start(A, 1, 4), scrape(2, 3, 0, 0, 0)],
    "an answer that was lost": [start(A, 1, None), scrape(5, 6, 0, 1, 0)],
    "a request that was lost": [start(A, 1, None), scrape(5, 6, 0, 0, 0)],
    "a request that comes late": [start(A, 1, None), scrape(5, 6, 0, 0, 0), scrape(7, 8, 0, 1, 0)],
    "a request that comes after its peer's next word": [
        start(A, 1, None), stop(A, 4, 5), scrape(6, 7, 0, 0, 0), scrape(8, 9, 0, 1, 0)],
    "a seeder is told of leechers": [
        start(A, 1, 2), start(B, 3, 4, (1, 1), [A], left=0), start(C, 5, 6, (2, 1), [A], left=0)],
    "some of more than are wanted": [
        start(A, 1, 2), start(B, 3, 4, (0, 2), [A]), start(C, 5, 6, (0, 3), [B], want=1)],
    "a download counts once": [start(A, 1, 2), complete(A, 3, 4), complete(A, 5, 6), scrape(7, 8, 1, 0, 1)],
    "a seeder that came complete counts not": [
        start(A, 1, 2, (1, 0), left=0), complete(A, 3, 4), scrape(5, 6, 1, 0, 0)],
    "another client at the address may complete again": [
        start(A, 1, 2), complete(A, 3, 4), start(A, 5, 6, id="other"), complete(A, 7, 8, id="other"),
        scrape(9, 10, 1, 0, 2)],
    "what was refused is not there": [refused(start(A, 1, None), NOT_STORED, 2), scrape(3, 4, 0, 0, 0)],
    "what a lost disk had may be there": [refused(start(A, 1, None), LOST, 2), scrape(3, 4, 0, 1, 0)],
    "two families share counts, not lists": [start(A, 1, 2), start("[fd00::1]:2001", 3, 4, (0, 2), [])],
    "who is silent for an interval and a fifth may be taken out": [start(A, 1, 2), scrape(2_200, 2_201, 0, 0, 0)],
}

WRONG = {
    "a lost update": [start(A, 1, 2), scrape(3, 4, 0, 0, 0)],
    "a lost update, told by a list": [start(A, 1, 2), start(B, 3, 4, (0, 2), [])],
    "a stale scrape": [start(A, 1, 2), start(B, 3, 4, (0, 2), [A]), scrape(5, 6, 0, 1, 0)],
    "a read that goes back": [start(A, 1, 9, (0, 1)), scrape(2, 3, 0, 1, 0), scrape(4, 5, 0, 0, 0)],
    "a peer that nobody announced": [start(A, 1, 2, (0, 2), [B])],
    "a peer that was announced later": [start(A, 1, 2, (0, 2), [B]), start(B, 3, 4, (0, 2), [A])],
    "a peer that has left": [start(A, 1, 2), stop(A, 3, 4), start(B, 5, 6, (0, 2), [A])],
    "a peer that comes back by itself": [
        start(A, 1, 2), stop(A, 3, 4), scrape(5, 6, 0, 0, 0), scrape(7, 8, 0, 1, 0)],
    "a download that counts twice": [start(A, 1, 2), complete(A, 3, 4), scrape(5, 6, 1, 0, 2)],
    "a download that is not counted": [start(A, 1, 2), complete(A, 3, 4), scrape(5, 6, 1, 0, 0)],
    "a count that goes back": [
        start(A, 1, 2), complete(A, 3, 9), scrape(4, 5, 1, 0, 1), scrape(6, 7, 0, 1, 0)],
    "two see two orders": [
        start(A, 1, 9, (0, 1)), start(B, 1, 9, (0, 1)), scrape(10, 11, 0, 2, 0)],
    "what was refused is there": [refused(start(A, 1, None), BUSY, 2), scrape(3, 4, 0, 1, 0)],
    "a seeder that is told of a seeder": [start(A, 1, 2, (1, 0), left=0), start(B, 3, 4, (2, 0), [A], left=0)],
    "all are not told, and there is room": [start(A, 1, 2), start(B, 3, 4, (0, 2), [A]), start(C, 5, 6, (0, 3), [A])],
    "who leaves is counted still": [start(A, 1, 2), stop(A, 3, 4, (0, 1))],
    "who was answered is not counted": [start(A, 1, 2, (0, 0))],
    "one request, two effects": [
        start(A, 1, None), stop(A, 3, 4), scrape(5, 6, 0, 1, 0), stop(A, 7, 8), scrape(9, 10, 0, 1, 0)],
    "who is heard again is taken out too early": [start(A, 1, 2), scrape(1_900, 1_901, 0, 0, 0)],
}


class Small(unittest.TestCase):

    def test_what_is_right_is_found_right(self):
        for name, operations in RIGHT.items():
            with self.subTest(name):
                self.assertEqual(linearizability.check(told(*copy.deepcopy(operations))).kind, "linearizable")

    def test_what_is_wrong_is_found_wrong(self):
        for name, operations in WRONG.items():
            with self.subTest(name):
                self.assertEqual(linearizability.check(told(*copy.deepcopy(operations))).kind, "contradiction")

    def test_each_copy_may_have_an_effect_of_its_own(self):
        twice = start(A, 1, None)
        twice.sent = [[1, 1], [1.5, 2]]
        rest = [stop(A, 3, 4), scrape(5, 6, 0, 1, 0), stop(A, 7, 8), scrape(9, 10, 0, 1, 0)]
        self.assertEqual(linearizability.check(told(twice, *rest)).kind, "linearizable")
        # In a group they are one request.
        self.assertEqual(linearizability.check(told(twice, *rest, entry="group")).kind, "contradiction")

    def test_a_group_may_answer_twice_if_it_says_the_same(self):
        def twice(leechers):
            one = start(A, 1, 2)
            one.replies.append([4, {**one.replies[0][1], "leechers": leechers}])
            return told(one, start(B, 5, 6, (0, 2), [A]), entry="group")
        self.assertEqual(linearizability.check(twice(1)).kind, "linearizable")
        self.assertEqual(linearizability.check(twice(2)).kind, "contradiction")

    def test_too_much_work_is_undecided_and_said_so(self):
        world = swarm_model.World(1, silence=0.3, count=150).run()
        self.assertEqual(linearizability.check(world, budget=20).kind, "undecided")


# All orders, one after another

def explains(order, history):
    """Whether a swarm that does these (operation, answer) in this order answers just so."""
    swarm = swarm_model.Swarm()
    for operation, answer in order:
        if operation.kind == "announce":
            swarm.announce(operation)
        if answer is None:
            continue
        counts = {**swarm.counts(), "completed": swarm.completed}
        if any(answer[name] != counts[name] for name in ("seeders", "leechers", "completed") if name in answer):
            return False
        if operation.kind == "announce":
            candidates = swarm.candidates(operation)
            if len(answer["peers"]) != min(len(candidates), history.limit(operation)) \
                    or not set(answer["peers"]) <= set(candidates):
                return False
    return True


def is_linearizable(history):
    """Tries all orders of all subsets: for small histories only."""
    answered, loose = [], []
    for operation in history.operations:
        if operation.answers:
            answered.append((operation, *operation.answers[0]))
        elif not operation.errors and operation.kind == "announce":
            loose.append((operation, records.NEVER, None))
    for count in range(len(loose) + 1):
        for happened in itertools.combinations(loose, count):
            for order in itertools.permutations([*answered, *happened]):
                in_time = all(later[1] >= earlier[0].called for place, earlier in enumerate(order)
                              for later in order[place + 1:])
                if in_time and explains([(one[0], one[2]) for one in order], history):
                    return True
    return False


class Compared(unittest.TestCase):

    def test_it_says_the_same_as_a_search_through_all_orders(self):
        verdicts = collections.Counter()
        for seed in range(500):
            world = swarm_model.World(seed, clients=2 + seed % 3, scrapers=1, count=6, silence=0.3, wants=(200, 200, 1),
                                      overlaps=0.5 if seed % 2 else 0)
            history = world.run()
            draw = random.Random(seed)
            if seed % 3:
                spoil_an_answer(history, draw)
            found = linearizability.check(history).kind
            is_right = found == "linearizable" and not forms.faults(history)
            self.assertEqual(is_right, is_linearizable(history), f"seed {seed}: {found}")
            verdicts[found] += 1
        self.assertGreater(min(verdicts["linearizable"], verdicts["contradiction"]), 100, verdicts)


# Random histories

def spoil_an_answer(history, draw):
    """One answer says something else than it said."""
    answers = [(operation, answer) for operation in history.operations for _, answer in operation.answers]
    if not answers:
        return False
    operation, answer = draw.choice(answers)
    name = draw.choice(["seeders", "leechers", "completed" if operation.kind == "scrape" else "peers"])
    if name != "peers":
        answer[name] = max(answer[name] + draw.choice([-1, 1]), 0)
    elif answer["peers"] and draw.random() < 0.5:
        answer["peers"].remove(draw.choice(answer["peers"]))
    else:
        others = {other.peer for other in history.operations if other.peer} - {operation.peer, *answer["peers"]}
        answer["peers"].append(draw.choice(sorted(others) or ["10.9.9.9:9"]))
    return True


class Fault:
    """A mistake of a tracker that happens once, half-way through a history."""

    def __init__(self, kind, seed):
        self.kind, self.has_happened, self.start = kind, False, 60 + seed % 40

    def __call__(self, world, operation):
        if self.has_happened or len(world.history.operations) < self.start:
            return None
        answer = getattr(self, self.kind)(world, operation)
        self.has_happened = answer is not None
        return answer

    def lost_update(self, world, operation):
        """Answered as it should be, and gone."""
        if operation.kind == "announce" and operation.event in ("started", "stopped"):
            before = copy.deepcopy(world.swarm)
            answer = world.happen(operation)
            world.swarm = before
            return answer

    def stale_scrape(self, world, operation):
        """The counts of some changes ago."""
        if operation.kind == "scrape" and world.past[-12] != world.past[-1]:
            return world.past[-12]

    def late_copy(self, world, operation):
        """A word that takes effect once more, after the next word of the same peer."""
        if operation.kind == "announce" and operation.event != "none":
            world.later(2, world.swarm.announce, operation)
            return world.happen(operation)

    def double_count(self, world, operation):
        if operation.event == "completed":
            answer = world.happen(operation)
            world.swarm.completed += 1
            return answer

    def phantom_refusal(self, world, operation):
        """Told not to be stored, and stored."""
        if operation.kind == "announce" and operation.event == "started":
            world.happen(operation)
            return {"error": NOT_STORED}

    def split_brain(self, world, operation):
        """For the rest of the time some clients are answered by a swarm of their own."""
        mine, others = copy.deepcopy(world.swarm), world.swarm

        def divided(world, operation):
            if int(operation.client.split()[-1]) % 2 == 0:
                return None
            world.swarm = mine
            answer = world.happen(operation)
            world.swarm = others
            return answer
        world.fault = divided
        return world.happen(operation)


LEAST = {"lost_update": 0.7, "stale_scrape": 0.6, "late_copy": 0.3, "double_count": 0.8, "phantom_refusal": 0.7,
         "split_brain": 0.9, "an answer is spoiled": 0.7}
"""The part of histories with a mistake that has to be found. The rest are those that operations beside it explain."""


class Random(unittest.TestCase):

    def test_what_a_right_swarm_tells_is_never_called_wrong(self):
        verdicts = collections.Counter()
        for seed in range(250):
            history = swarm_model.World(seed, clients=3 + seed % 8, scrapers=seed % 3,
                                        silence=[0, 0.03, 0.1][seed % 3], overlaps=[0, 0.1][seed % 2]).run()
            verdicts[linearizability.check(history).kind] += 1
        self.assertEqual(verdicts["contradiction"], 0, verdicts)
        self.assertLessEqual(verdicts["undecided"], 5, verdicts)

    def test_mistakes_are_found(self):
        print(flush=True)
        for kind, least in LEAST.items():
            found = made = 0
            for seed in range(40):
                fault = Fault(kind, seed) if kind in dir(Fault) else None
                world = swarm_model.World(seed, clients=4 + seed % 4, scrapers=2, silence=0.02, errors=0.01,
                                          fault=fault)
                history = world.run()
                if not (fault.has_happened if fault else spoil_an_answer(history, random.Random(seed))):
                    continue
                made += 1
                found += linearizability.check(history).kind == "contradiction"
            print(f"    {kind}: {found} of {made} found", flush=True)
            self.assertGreater(made, 25)
            self.assertGreaterEqual(found, least * made)


class Shrinking(unittest.TestCase):

    def test_what_is_left_is_small_and_still_a_contradiction(self):
        sizes = []
        for seed in range(12):
            fault = Fault(["lost_update", "double_count", "late_copy", "stale_scrape"][seed % 4], seed)
            history = swarm_model.World(seed, clients=5, scrapers=2, silence=0.02, fault=fault).run()
            if linearizability.check(history).kind != "contradiction":
                continue
            peers = peers_of(history)
            steps = shrinking.Shrinker(steps_of(history, peers), len(peers)).run()
            self.assertEqual(linearizability.Search(steps, len(peers)).run().kind, "contradiction")
            sizes.append(len(steps))
        self.assertGreater(len(sizes), 6)
        self.assertLess(sorted(sizes)[len(sizes) // 2], 12, sizes)

    def explain(self, *operations):
        history = told(*copy.deepcopy(operations))
        peers = peers_of(history)
        everything = steps_of(history, peers)
        steps = shrinking.Shrinker(everything, len(peers)).run()
        return "\n".join(shrinking.sentences(history, everything, steps, peers))

    def test_each_wrong_kind_is_told_in_words(self):
        noise = [start(C, 0.1, 0.2), stop(C, 0.3, 0.4), scrape(0.5, 0.6, 0, 0, 0)]
        for name, words in [
                ("a lost update, told by a list",
                 f"{A} had been answered before that was asked, and has not stopped since: it is lost"),
                ("a peer that nobody announced", f"Nobody has announced {B} before that was told"),
                ("a peer that has left", f"{A} had stopped before that was asked, and nothing has brought it back"),
                ("a download that counts twice", "1 downloads were told to be complete by then, and 2 are counted")]:
            with self.subTest(name):
                text = self.explain(*noise, *WRONG[name])
                self.assertIn(words, text)
                self.assertNotIn(C, text)


# Survivor mode

WATCHER = "10.0.0.9:2090"


def look(call, tracker, seeders, leechers, completed):
    one = scrape(call, call + 0.1, seeders, leechers, completed)
    one.client, one.sent = "the last scraper", [[call, tracker]]
    return one


def watch(call, told, *peers):
    return start(WATCHER, call, call + 0.1, told, peers)


def at(tracker, operation):
    operation.sent = [[time, tracker] for time, _ in operation.sent]
    return operation


def split(*operations, looks=None, healed=20, ended=30, **more):
    """A history of survivor mode, cut in two from 5 to 15 s."""
    return told(*operations, *(looks or []), mode="survivor", profile="classic", calm=5.0, healed=float(healed),
                ended=float(ended), end=100.0, marks=[[5.0, 15.0, "tracker 3 is cut off"]], **more)


BEFORE = [start(A, 1, 2), start(B, 3, 4, (0, 2), [A])]

SURVIVED = {
    "both sides serve, and know half of it": [
        *BEFORE, at(3, stop(A, 6, 7, (0, 1))), start(C, 6, 7, (0, 3), [A, B]), watch(31, (0, 3), B, C)],
    "an unanswered word may count or not": [*BEFORE, at(3, stop(A, 6, None)), watch(31, (0, 3), A, B)],
    "a word that was refused may be there all the same": [
        *BEFORE, refused(stop(A, 6, None), NOT_STORED, 7), watch(31, (0, 2), B)],
    "a download under way may count on both sides": [
        *BEFORE, complete(A, 4.9, 8, (1, 1), [B]), look(31, 1, 1, 1, 2), watch(33, (1, 2), A, B)],
}

LOST = {
    "a live peer is lost": ([*BEFORE, watch(31, (0, 2), B)], f"{A} is not told"),
    "who has stopped is back": (
        [*BEFORE, at(3, stop(A, 6, 7, (0, 1))), watch(31, (0, 3), A, B)], f"{A} is told to be there"),
    "the older word counts": (
        [*BEFORE, at(3, complete(A, 6, 7, (1, 1), [B])), announce(WATCHER, "started", 31, 32, 0, (1, 2), [A, B])],
        f"{A} is told to be a leecher"),
    "somebody is made up": ([*BEFORE, watch(31, (0, 3), A, B, C)], f"is told of {C}, which nobody has announced"),
    "more are counted than there are": ([*BEFORE, look(31, 1, 2, 2, 0)], "2 peers have announced by then"),
    "downloads are counted again": (
        [*BEFORE, complete(A, 16, 16.1, (1, 1), [B]), look(31, 1, 1, 1, 2)], "2 downloads are counted"),
    "a download is lost": (
        [*BEFORE, complete(A, 6, 7, (1, 1), [B]), look(31, 1, 1, 1, 0)], "0 downloads are counted"),
    "two repositories": ([*BEFORE, look(31, 1, 0, 2, 0), look(32, 3, 0, 1, 0)], "more than one repository"),
    "no answer, with nothing wrong": (
        [*BEFORE, at(1, start(C, 40, None))], "asks tracker 1, with which nothing is wrong"),
    "stale before anything happened": ([*BEFORE, scrape(4.5, 4.6, 0, 1, 0)], "Before the first fault"),
}


class Survivors(unittest.TestCase):

    def test_what_is_promised_is_found_kept(self):
        for name, operations in SURVIVED.items():
            with self.subTest(name):
                self.assertEqual(survivors.check(split(*copy.deepcopy(operations))), ([], False))

    def test_what_is_promised_is_missed(self):
        for name, (operations, words) in LOST.items():
            with self.subTest(name):
                problems, _ = survivors.check(split(*copy.deepcopy(operations)))
                self.assertEqual(len(problems), 1, problems)
                self.assertIn(words, problems[0])

    def test_a_late_copy_is_allowed_for_unless_asked_otherwise(self):
        operations = copy.deepcopy([*BEFORE, start(A, 5.2, 8, (0, 2), [B]), stop(A, 12, 12.1, (0, 1)),
                                    watch(31, (0, 3), A, B)])
        self.assertEqual(survivors.check(split(*operations)), ([], False))
        self.assertEqual(len(survivors.check(split(*operations), is_strict=True)[0]), 1)

    def test_a_side_that_takes_over_the_state_of_another_forgets_what_it_has_heard(self):
        for time, count in [(15.2, 0), (20, 1)]:
            operations = copy.deepcopy([*BEFORE, at(1, start(C, time, None)), watch(41, (0, 3), A, B)])
            self.assertEqual(len(survivors.check(split(*operations, ended=40))[0]), count)

    def test_a_fault_excuses_the_tracker_that_it_is_about(self):
        operations = copy.deepcopy([*BEFORE, at(3, start(C, 8, None)), watch(31, (0, 3), A, B)])
        self.assertEqual(survivors.check(split(*operations)), ([], False))
        operations = copy.deepcopy([*BEFORE, at(1, start(C, 8, None)), watch(31, (0, 3), A, B)])
        self.assertEqual(len(survivors.check(split(*operations))[0]), 1)


class Files(unittest.TestCase):

    def run_on(self, text):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "one.history"
            path.write_text(text)
            done = subprocess.run([sys.executable, HERE / "check_history.py", path], capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def text(self, history):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "one.history"
            history.write(path)
            self.assertEqual(History.read(path), history)
            return path.read_text()

    def test_a_file_is_checked_again(self):
        self.assertEqual(self.run_on(self.text(told(*RIGHT["one after another"])))[0], 0)
        code, text = self.run_on(self.text(told(*WRONG["a peer that has left"])))
        self.assertEqual(code, 1)
        self.assertIn(f"{A} had stopped before that was asked", text)

    def test_what_is_no_history_is_refused_with_its_place(self):
        good = json.dumps({"swarm": "00"})
        for text, words in [("", "is empty"), ("{", "line 1"), ('{"swarm": "00", "colour": 1}', "line 1"),
                            (good + '\n{"kind": "dance", "client": "", "sent": [[1, 1]], "replies": []}', "line 2"),
                            (good + '\n{"kind": "scrape", "client": "", "sent": [], "replies": []}', "line 2"),
                            (good + '\n{"kind": "scrape", "client": "", "sent": [[2, 1]], '
                                    '"replies": [[1, {"error": ""}]]}', "before its request")]:
            with self.subTest(text):
                code, said = self.run_on(text)
                self.assertEqual(code, 2, said)
                self.assertIn(words, said)


if __name__ == "__main__":
    unittest.main()
