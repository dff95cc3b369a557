#!/usr/bin/python3
"""Runs the system tests side by side, each in namespaces of its own.

    /usr/bin/python3 Tests/SystemTests/run.py [-k PATTERN …] [--jobs N] [--verbose] [--list]

As root. Most of a system test is waiting: for a master that is dead to be missed, for a client to
ask again. So several run at once, each as a process in a network, mount and process namespace of its
own: no port, broker, mount or process of one can be in another's way, and all of it ends with the
process, however that ends. The longest come first, by the seconds that `seconds.json` remembers
(`--remember` writes them anew); that is a hint and no more. Short tests of a class share a process. A
test class that says `is_heavy = True` keeps all processors busy: one of those runs at a time.

What a failing test printed is shown whole. The last line counts the tests; the exit code is 0 when none failed.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
HINTS = HERE / "seconds.json"
UNKNOWN = 30.0
"""Seconds that a test is taken for of which nothing is remembered."""
TOGETHER = 15.0
"""Seconds of tests that share a process, at most."""
LIMIT = 4 * 3600 if os.environ.get("SWARMKEEPER_LONG") == "1" else 1200
"""Seconds after which a process is taken to hang. Each wait of a test has a bound of its own, far below."""
CORES = len(os.sched_getaffinity(0))
NAMESPACES = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL",
              "--mount-proc"]


# Within the namespaces

class Notes(unittest.TextTestResult):
    """A result that also goes, line by line, to whoever runs the tests."""

    def startTest(self, test):
        self._begin, self._outcome = time.monotonic(), "passed"
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        seconds = time.monotonic() - self._begin
        with open(os.environ["SWARMKEEPER_TEST_NOTES"], "a", encoding="utf-8") as notes:
            print(json.dumps([test.id(), self._outcome, seconds]), file=notes)

    def addError(self, test, problem):
        self._outcome = "failed"
        super().addError(test, problem)

    def addFailure(self, test, problem):
        self._outcome = "failed"
        super().addFailure(test, problem)

    def addSubTest(self, test, part, problem):
        if problem:
            self._outcome = "failed"
        super().addSubTest(test, part, problem)

    def addUnexpectedSuccess(self, test):
        self._outcome = "failed"
        super().addUnexpectedSuccess(test)

    def addSkip(self, test, reason):
        self._outcome = "skipped"
        super().addSkip(test, reason)


def run_within(names):
    """Runs tests in this process, which is the first of its namespaces."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    result = unittest.TextTestRunner(verbosity=2, resultclass=Notes).run(suite)
    return 0 if result.wasSuccessful() else 1


# Outside

class Job:
    """Tests that share a process; `finished` collects (test, outcome, seconds) once it has ended."""

    def __init__(self, tests, seconds, is_heavy):
        self.tests, self.seconds, self.is_heavy = tests, seconds, is_heavy

    def start(self, place):
        place.mkdir()
        self._log, self._notes, temporary = place / "output.log", place / "notes", place / "tmp"
        temporary.mkdir()
        self._notes.touch()
        environment = {**os.environ, "TMPDIR": str(temporary), "SWARMKEEPER_TEST_NOTES": str(self._notes)}
        with open(self._log, "wb") as output:
            self._process = subprocess.Popen(
                [*NAMESPACES, sys.executable, "-u", __file__, "--within", *self.tests], cwd=HERE, env=environment,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
        self._place, self._begin = place, time.monotonic()

    def has_ended(self):
        """Whether it has ended; `finished`, `output` and `is_good` are there then."""
        code = self._process.poll()
        if code is None and time.monotonic() - self._begin < LIMIT:
            return False
        if code is None:
            self.kill()
        self.output = self._log.read_text(errors="replace")
        told = {test: (outcome, seconds) for test, outcome, seconds in
                map(json.loads, self._notes.read_text().splitlines())}
        self.finished = [(test, *told.get(test, ("failed", time.monotonic() - self._begin))) for test in self.tests]
        if code is None:
            self.output += f"\nIt had not ended after {LIMIT} s, and was killed."
        elif code != 0 and all(outcome != "failed" for _, outcome, _ in self.finished):
            # Something beside the tests went wrong: whoever tears a module down, or the interpreter.
            self.output += f"\nIts process ended with status {code}."
            self.finished = [(test, "failed", seconds) for test, _, seconds in self.finished]
        self.is_good = all(outcome != "failed" for _, outcome, _ in self.finished)
        remove(self._place)
        return True

    def kill(self):
        """Ends it with all that it started: the kernel ends a process namespace with its first process."""
        self._process.kill()
        self._process.wait()


def remove(place):
    for _ in range(50):  # What was killed may be at its last write.
        shutil.rmtree(place, ignore_errors=True)
        if not place.exists():
            return
        time.sleep(0.1)


def find(patterns, files):
    """All tests in such files that one of the patterns names, all without patterns."""
    loader = unittest.TestLoader()
    loader.testNamePatterns = [pattern if "*" in pattern else f"*{pattern}*" for pattern in patterns] or None
    suites, tests = [loader.discover(str(HERE), files)], []
    while suites:
        for one in suites.pop():
            (suites if isinstance(one, unittest.TestSuite) else tests).append(one)
    if loader.errors:
        sys.exit("\n".join(loader.errors))
    return tests


def make_jobs(tests, hints):
    """Heavy ones first, for they wait for each other; then the longest first."""
    by_class = collections.defaultdict(list)
    for test in tests:
        by_class[type(test)].append(test.id())
    jobs = []
    for kind, names in by_class.items():
        is_heavy, group, seconds = getattr(kind, "is_heavy", False), [], 0.0
        for name in sorted(names, key=lambda name: hints.get(name, UNKNOWN)):
            hint = hints.get(name, UNKNOWN)
            if group and seconds + hint > TOGETHER:
                jobs.append(Job(group, seconds, is_heavy))
                group, seconds = [], 0.0
            group.append(name)
            seconds += hint
        jobs.append(Job(group, seconds, is_heavy))
    return sorted(jobs, key=lambda job: (not job.is_heavy, -job.seconds))


def run(jobs, count, is_verbose):
    """Runs the jobs, so many at a time; returns (test, outcome, seconds) of all tests."""
    running, finished, total = [], [], sum(len(job.tests) for job in jobs)
    place = pathlib.Path(tempfile.mkdtemp(prefix="swarmkeeper-tests-"))
    place.chmod(0o755)  # Some tests run a tracker as nobody.
    numbers = iter(range(len(jobs)))
    try:
        while jobs or running:
            has_heavy = any(job.is_heavy for job in running)
            following = next((job for job in jobs if not (job.is_heavy and has_heavy)), None)
            if following and len(running) < count:
                jobs.remove(following)
                following.start(place / str(next(numbers)))
                running.append(following)
                continue
            time.sleep(0.05)
            for job in [job for job in running if job.has_ended()]:
                running.remove(job)
                if is_verbose or not job.is_good:
                    print(f"\n── what was printed by {', '.join(job.tests)}", job.output, "──", sep="\n")
                for test, outcome, seconds in job.finished:
                    finished.append((test, outcome, seconds))
                    print(f"{len(finished):4} of {total}  {outcome:8} {seconds:6.1f} s  {test}", flush=True)
    finally:
        for job in running:
            job.kill()
        remove(place)
    return finished


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-k", metavar="PATTERN", dest="patterns", action="append", default=[],
                        help="only tests whose names have this in them; may come several times")
    parser.add_argument("--files", default="test*.py", help="where to look for tests (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=3 * CORES, help="processes at a time (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="show what tests print that pass, too")
    parser.add_argument("--list", action="store_true", help="list the tests, process by process, and run none")
    parser.add_argument("--remember", action="store_true", help=f"write how long each took to {HINTS.name}")
    options = parser.parse_args()
    hints = json.loads(HINTS.read_text()) if HINTS.exists() else {}
    jobs = make_jobs(find(options.patterns, options.files), hints)
    if options.list:
        for job in jobs:
            print(f"{job.seconds:6.1f} s{' heavy' if job.is_heavy else '      '}  {' '.join(job.tests)}")
        return 0
    if not jobs:
        sys.exit(f"No test has {' or '.join(options.patterns)} in its name; --list shows them all.")
    if os.geteuid() != 0:
        sys.exit("The system tests make network namespaces, which needs root: run them as root.")
    # SIGTERM ends everything, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    begin = time.monotonic()
    try:
        finished = run(jobs, max(options.jobs, 1), options.verbose)
    except KeyboardInterrupt:
        print("\nInterrupted: all that ran has been ended.", file=sys.stderr)
        return 130
    if options.remember:
        known = {test: round(seconds, 1) for test, outcome, seconds in finished if outcome == "passed"}
        hints = hints | known if options.patterns else known
        HINTS.write_text(json.dumps(hints, indent=1, sort_keys=True) + "\n")
    failed = [test for test, outcome, _ in finished if outcome == "failed"]
    print(f"\nRan {len(finished)} tests in {time.monotonic() - begin:.0f} s, {options.jobs} processes at a time.")
    if failed:
        print("Failed:", *failed, sep="\n  ")
    counts = collections.Counter(outcome for _, outcome, _ in finished)
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    sys.exit(run_within(sys.argv[2:]) if sys.argv[1:2] == ["--within"] else main())
