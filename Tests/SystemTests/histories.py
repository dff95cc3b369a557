"""Histories of real clusters: clients write down what they ask and are told, while trackers are killed, held, cut off
and starved of disk; then each history is checked.

    TRACKER=… /usr/bin/python3 Tests/SystemTests/histories.py [--minutes 20] [--only NAME] [--seed 1] [--keep DIR]

As root, for network namespaces. A round has swarms of its own: clients ask, faults come, all is made well again, and
last each tracker is asked for what it holds. The seed fixes the faults and what clients want; when things happen, the
machine decides. A history that breaks a promise stays as a file (`--keep`), which `check_history.py` checks again.
"""

import argparse
import collections
import errno
import pathlib
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import cluster
import recorders
from namespaces import PATIENCE
from world import PORT

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIBRARY_SOURCE = HERE / "failing_disk.c"
NO_ROOM = f"write tracker.sqlite-wal {errno.ENOSPC}\n"
BROKEN = f"write tracker.mark {errno.EIO}\n"
DISK_LOST = 74
"""With what a tracker ends when nobody can say what is on its disk (EX_IOERR)."""

KINDS = {
    # name: (profile, entry, how many trackers)
    "paxos": ("paxos", "any", 3),
    "paxos-group": ("paxos", "group", 3),
    "paxos-five": ("paxos", "any", 5),
    "paxos-expiry": ("paxos", "any", 3),
    "classic": ("classic", "any", 3),
    "rotating": ("rotating", "any", 3),
    "lowest": ("lowest", "any", 3),
}


class Trackers(cluster.Cluster):
    """A cluster over multicast whose disks can be made to fail."""

    port = PORT
    group = (cluster.GROUP, PORT)

    def __init__(self, kind):
        self.profile, entry, count = KINDS[kind]
        mode = "quorum" if self.profile == "paxos" else "survivor"
        flags = ["--profile", self.profile, "--limit-errors", 1_000_000, "--keep-swarms"]
        if kind == "paxos-expiry":
            flags += ["--interval", "5s", "--interval-jitter", "1s"]
        # Who is preferred depends on the profile, so the wait for a master is not that of the class.
        super().__init__("multicast", entry, count, mode, flags, is_mute=True)

    def _build(self):
        library = self.directory / "failing_disk.so"
        subprocess.run(["cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", library, LIBRARY_SOURCE, "-ldl"], check=True)
        self.library = library
        super()._build()
        self.wait_until_serving(preferred=False)

    @property
    def environment(self):
        # Each tracker runs in a directory of its own, and so has a file of faults of its own.
        return {**self._environment, "LD_PRELOAD": str(self.library), "FAILING_DISK": "faults"}

    @environment.setter
    def environment(self, environment):
        self._environment = environment


class Faults:
    """What is done to the trackers; each fault says what it does, and returns what mends it."""

    KINDS = ["kill", "kill", "hold", "hold", "cut", "cut", "starve", "break", "kill all", "starve all", "lose a disk"]

    def __init__(self, trackers, draw):
        self.trackers, self.random = trackers, draw
        self.counts, self._kinds, self.is_cut = collections.Counter(), [], False
        self.may_lose_disk = trackers.mode == "quorum"

    def begin_round(self):
        self.may_lose_disk = self.trackers.mode == "quorum"

    def draw(self):
        """(kind, what it does, a function that does it and returns what mends it, for how many seconds)."""
        kind = self._next_kind()
        member = self.member()
        seconds = self.random.uniform(0.3, 5)
        name = f"tracker {member.number}"
        match kind:
            case "kill":
                return kind, f"{name} is killed", lambda: self._kill(member), seconds
            case "hold":
                return kind, f"{name} is held", lambda: self._hold(member), seconds
            case "cut":
                return kind, f"{name} is cut off", lambda: self.cut(member), seconds + 1
            case "starve":
                return kind, f"{name} has no room on its disk", lambda: self._starve([member]), seconds
            case "starve all":
                return kind, "no tracker has room on its disk", lambda: self._starve(self.trackers.members), seconds / 2
            case "break":
                return kind, f"{name} loses its disk, which is mended", lambda: self._break(member), seconds
            case "kill all":
                return kind, "all trackers are killed", self._kill_all, seconds / 3
            case _:
                self.may_lose_disk = False
                return kind, f"{name} is killed, and its disk is another", lambda: self._replace(member), seconds

    def _next_kind(self):
        """All kinds, in an order of their own each time; in a round one disk is lost at most, and one cut is enough."""
        if not self._kinds:
            self._kinds = [*self.KINDS]
            self.random.shuffle(self._kinds)
        kind = self._kinds.pop()
        if kind == "cut" and self.is_cut:
            return "hold"
        return "kill" if kind == "lose a disk" and not self.may_lose_disk else kind

    def member(self):
        """The one that is preferred as master, in half of the cases."""
        members = self.trackers.members
        preferred = members[0] if self.trackers.profile == "lowest" else members[-1]
        return preferred if self.random.random() < 0.5 else self.random.choice(members)

    def _kill(self, member):
        member.process.signal(signal.SIGCONT)
        member.kill()
        return lambda: self._start(member)

    def _start(self, member):
        if not member.is_up:
            member.start()

    def _kill_all(self):
        for member in self.trackers.members:
            self._kill(member)

        def mend():
            for member in self.trackers.members:
                self._start(member)
        return mend

    def _hold(self, member):
        if not member.is_up:
            return lambda: None
        process = member.process
        process.signal(signal.SIGSTOP)

        def mend():
            if process.status is None:
                process.signal(signal.SIGCONT)
        return mend

    def cut(self, member):
        others = [other.host for other in self.trackers.members if other is not member]
        cut = self.trackers.partition([member.host], others)
        cut.__enter__()
        self.is_cut = True

        def mend():
            cut.__exit__(None, None, None)
            self.is_cut = False
        return mend

    def _starve(self, members):
        return self._fail(members, NO_ROOM)

    def _fail(self, members, line):
        for member in members:
            (member.directory / "faults").write_text(line)

        def mend():
            for member in members:
                (member.directory / "faults").unlink(missing_ok=True)
        return mend

    def _break(self, member):
        heal = self._fail([member], BROKEN)

        def mend():
            heal()
            # A tracker that cannot say what is on its disk ends by itself; one that wrote nothing meanwhile goes on.
            self._start(member)
        return mend

    def _replace(self, member):
        self._kill(member)
        shutil.rmtree(member.directory / "data")
        (member.directory / "data").mkdir()
        return lambda: self._start(member)


class Round:
    """Some swarms, from their first peer to the last look at them."""

    CALM = 2.0
    """Seconds in which nothing is done to trackers yet."""
    ENOUGH = 50
    """Answers by which it shows that clients are served again."""

    def __init__(self, trackers, hosts, faults, seed, **options):
        self.trackers, self.faults, self.random = trackers, faults, random.Random(seed)
        self.crowd = recorders.Crowd(trackers, hosts, seed, **options)
        self.marks = []
        self.slowest_heal = 0.0  # Seconds until there was one master again, and one state, after a fault had ended.

    def run(self, seconds):
        """Returns the histories, once all is well again and each tracker has said what it holds."""
        with self.crowd as crowd:
            self.faults.begin_round()
            epochs = self._epochs()
            crowd.run(self.CALM + self.random.random())
            calm = crowd.now()
            is_calm = epochs == self._epochs()
            self._strike(seconds)
            self._heal()
            healed = crowd.now()
            crowd.run(0.5)
            if self.trackers.mode == "survivor":
                self._divide()
                # What was asked last is decided everywhere.
                begin = time.monotonic()
                self.trackers.wait_until_equal(60)
                self.slowest_heal = max(self.slowest_heal, time.monotonic() - begin)
            crowd.end()
            ended = crowd.now()
            assert crowd.observe(30 * PATIENCE), f"the last questions have no answer; {self.trackers.views()}"
            end = crowd.now()
        for history in crowd.histories:
            history.marks, history.healed, history.ended, history.end = self.marks, healed, ended, end
            history.calm = calm if is_calm else 0.0
        return crowd.histories

    def _epochs(self):
        return [view and view["epoch"] for view in (member.cluster_view() for member in self.trackers.members)]

    def _strike(self, seconds):
        """Faults come alone, or two beside one another; then clients are answered again for a while, most often."""
        crowd, end = self.crowd, time.monotonic() + seconds
        while time.monotonic() < end:
            active = [self._begin()]
            if self.random.random() < 0.5:
                crowd.run(self.random.choice([0, 0.2, 1, 2.5]))
                active.append(self._begin())
            for until, mend, mark in sorted(active, key=lambda one: one[0]):
                crowd.run(until - time.monotonic())
                mend()
                mark[1] = crowd.now()
            self._start_those_who_ended()
            if self.random.random() < 0.8:
                answers = crowd.answers
                crowd.run(8, until=lambda: crowd.answers > answers + self.ENOUGH)
                crowd.run(self.random.uniform(0, 1.5))

    def _start_those_who_ended(self):
        """Who loses the disk ends by itself, as somebody does who finds none to begin with; nobody ends otherwise."""
        for member in self.trackers.members:
            if member.process.status == DISK_LOST:
                member.start()
            assert member.is_up, f"tracker {member.number} ended with status {member.process.status}"

    def _begin(self):
        """A fault: (when it ends, what mends it, its mark)."""
        kind, what, strike, lasts = self.faults.draw()
        mark = [self.crowd.now(), None, what]
        self.marks.append(mark)
        self.faults.counts[kind] += 1
        return time.monotonic() + lasts, strike(), mark

    def _divide(self):
        """Last, one is cut off while clients ask on either side; they have their last words before the sides meet."""
        member = self.faults.member()
        mark = [self.crowd.now(), None, f"tracker {member.number} is cut off"]
        self.marks.append(mark)
        self.faults.counts["cut, and no word after it"] += 1
        mend = self.faults.cut(member)
        self.crowd.run(self.random.uniform(3, 6))
        # Each waits for its answer for as long as it would before it asks again. The last words come long enough after
        # all others to be the latest for sure.
        self.crowd.end(16)
        self.crowd.run(4)
        self.crowd.say_last_words(16)
        mend()
        mark[1] = self.crowd.now()
        self._heal()

    def _heal(self):
        """Waits until there is one master whom all follow; clients go on asking meanwhile."""
        crowd = self.crowd

        def is_well():
            self._start_those_who_ended()
            return self.trackers.master()
        begin = time.monotonic()
        for _ in range(60 * PATIENCE):
            if crowd.run(1, until=is_well, pause=0.5):
                self.slowest_heal = max(self.slowest_heal, time.monotonic() - begin)
                return
        raise AssertionError(f"not one master that serves; {self.trackers.views()}")


class Checks:
    """Histories are checked by processes beside the clients, one after another, so that nobody waits for them."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.results, self.kept = [], []  # (name, exit code, what was said), and files.
        self._logs, self._waiting = {}, queue.Queue()
        threading.Thread(target=self._work, daemon=True).start()

    def add(self, history, name):
        path = self.directory / f"{name}.history"
        history.write(path)
        self._waiting.put(path)

    def add_logs(self, trackers, name):
        """What the trackers of a run have said is kept where one of its histories is."""
        self._logs[name] = []
        for member in trackers.members:
            log = self.directory / f"{name}-tracker-{member.number}.log"
            log.write_text(member.log)
            self._logs[name].append(log)

    def _work(self):
        while True:
            path = self._waiting.get()
            done = subprocess.run(["nice", sys.executable, HERE / "check_history.py", path], capture_output=True,
                                  text=True)
            self.results.append((path.stem, done.returncode, done.stdout + done.stderr))
            if done.returncode == 0:
                path.unlink()
            else:
                self.kept.append(path)
            self._waiting.task_done()

    def finish(self):
        self._waiting.join()
        for name, logs in self._logs.items():
            if not any(path.name.startswith(f"{name}-") for path in self.kept):
                for log in logs:
                    log.unlink()


class Report:
    """What came of a run, for people."""

    def __init__(self, checks, faults, sent, rounds):
        self.checks, self.faults, self.sent, self.rounds = checks, faults, sent, rounds

    @property
    def broken(self):
        return [result for result in self.checks.results if result[1] not in (0, 3)]

    @property
    def undecided(self):
        return sum(code == 3 for _, code, _ in self.checks.results)

    def _numbers(self, pattern):
        return [float(found[1]) for _, _, text in self.checks.results if (found := re.search(pattern, text, re.M))]

    @property
    def operations(self):
        return int(sum(self._numbers(r"^(\d+) operations")))

    def lines(self):
        results, seconds = self.checks.results, self._numbers(r"\((\S+) s of processor time")
        partly = sum("is undecided" in text for _, code, text in results if code == 0)
        yield (f"{len(results)} histories of {self.rounds} rounds, {self.operations} operations, {self.sent} datagrams "
               f"sent; {len(self.broken)} break a promise, {self.undecided} are undecided, {partly} more as to "
               "downloads alone")
        yield f"{sum(self.faults.values())} faults: " + ", ".join(f"{count} × {kind}" for kind, count in
                                                                   sorted(self.faults.items()))
        if seconds:
            yield f"checked in {sum(seconds):.0f} s of processor time, {max(seconds):.1f} s the slowest"
        for name, _, text in self.broken:
            yield f"\n{name}:\n{text}"


def run(kind, seed, seconds, checks, say=print, round_seconds=16, **options):
    """Rounds on one cluster for so many seconds, one at least; returns (faults, datagrams sent, rounds)."""
    end, rounds, sent = time.monotonic() + seconds, 0, 0
    with Trackers(kind) as trackers:
        hosts = [trackers.host(f"clients-{number}") for number in range(3)]
        faults = Faults(trackers, random.Random(seed))
        while rounds == 0 or time.monotonic() + round_seconds < end:
            one = Round(trackers, hosts, faults, seed * 1_000 + rounds, **options)
            histories = one.run(round_seconds)
            sent += one.crowd.sent
            for number, history in enumerate(histories):
                checks.add(history, f"{kind}-{seed}-{rounds}-{number}")
            rounds += 1
            say(f"  {kind}, round {rounds}: {sum(len(history.operations) for history in histories)} operations, "
                f"well again after {one.slowest_heal:.1f} s at most; " + "; ".join(what for _, _, what in one.marks))
        checks.add_logs(trackers, f"{kind}-{seed}")
    return faults.counts, sent, rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=KINDS, action="append",
                        help="only this kind of cluster; may come several times")
    parser.add_argument("--keep", type=pathlib.Path, default=ROOT / ".build" / "histories",
                        help="where histories that break a promise are kept (default: %(default)s)")
    options = parser.parse_args()
    cluster.require_cluster()
    kinds = options.only or list(KINDS)
    checks = Checks(options.keep)
    counts, sent, rounds = collections.Counter(), 0, 0
    end = time.monotonic() + options.minutes * 60
    for place, kind in enumerate(kinds):
        share = (end - time.monotonic()) / (len(kinds) - place)
        print(f"{kind}: {share:.0f} s", flush=True)
        found = run(kind, options.seed, share, checks, say=lambda text: print(text, flush=True))
        counts, sent, rounds = counts + found[0], sent + found[1], rounds + found[2]
    checks.finish()
    report = Report(checks, counts, sent, rounds)
    print(*report.lines(), sep="\n")
    if checks.kept:
        print(f"Kept, to be checked again by {HERE / 'check_history.py'}:", *checks.kept, sep="\n  ")
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
