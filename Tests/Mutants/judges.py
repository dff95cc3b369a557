"""Who may notice a mutant: simulated worlds, the explorer's small clusters, and the tests of the logic."""

import collections
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILT = HERE / ".build" / "judge" / ".build" / "release"
MUTATED = HERE / ".build" / "mutated"
TRACES = HERE / ".build" / "traces"
TESTS = HERE / ".build" / "tests"
VERDICTS = HERE / ".build" / "verdicts.tsv"
TRANSCRIPTS = HERE.parent / "SimulationTests" / "Transcripts"
PLAIN = ["classic", "rotating", "lowest", "paxos", "alone"]
# In these nobody says that something is wrong, but the process ends, by a trap or by its limits.
SIGNALS = {signal.SIGPROF: "endless"}


class Mutant(collections.namedtuple("Mutant", "name point number kind file line place before after")):
    """A line of the list that `mutate` writes."""

    @property
    def key(self):
        return int(self.point), int(self.number)

    @property
    def title(self):
        """What is otherwise, where, in a line."""
        change = f"`{self.before}` → `{self.after}`" if self.after else f"without `{self.before}`"
        return f"{self.file}:{self.line}, {self.place}: {change}"


def check_built():
    """Ends with a sentence where `build` has not been run."""
    for path in (MUTATED / "mutants.tsv", BUILT / "judge"):
        if not path.exists():
            sys.exit(f"{path} is not there: run Tests/Mutants/build (minutes), or make mutants-sample")


def read_mutants():
    with open(MUTATED / "mutants.tsv", encoding="utf-8") as file:
        return [Mutant(*line.rstrip("\n").split("\t")) for line in file]


def in_parallel(jobs, work):
    """Does all jobs, on all processors; the first failure ends it."""
    jobs, lock, failures = iter(jobs), threading.Lock(), []

    def loop():
        while not failures:
            with lock:
                job = next(jobs, None)
            if job is None:
                return
            try:
                work(job)
            except Exception as failure:
                failures.append(failure)
    threads = [threading.Thread(target=loop) for _ in range(os.cpu_count())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


# Simulated worlds


def judge(*arguments, **options):
    return subprocess.run(
        [BUILT / "judge", *arguments], capture_output=True, text=True,
        env={**os.environ, "TRANSCRIPTS": str(TRANSCRIPTS)}, **options)


def grounds():
    return judge("grounds", check=True).stdout.split()


def traced_count(ground, scale):
    """Seeds of a ground that are traced: some 2,000 on all grounds for a scale of 1."""
    if ground in ("explorer", "stories"):
        return 12
    if ground in PLAIN:
        return int(200 * scale)
    return int((400 if ground == "swarm" else 20) * scale)


class Trace:
    """What the runs of a ground come to without a mutant, and which mutants would go another way in which of them."""

    def __init__(self, ground):
        self.ground = ground
        self.runs, self.reached, self.seen = {}, set(), {}
        for line in (TRACES / f"{ground}.txt").read_text().splitlines():
            words = line.split()
            if words[0] == "run":
                if "broken" in words:
                    sys.exit(f"{ground} {words[1]}: {words[-1]} is broken without any mutant")
                self.runs[int(words[1])] = words[2]
            elif words[0] == "reached":
                self.reached.add(int(words[1]))
            else:
                self.seen[int(words[1]), int(words[2])] = [int(seed) for seed in words[4:]]


def write_traces(scale):
    TRACES.mkdir(parents=True, exist_ok=True)

    def one(ground):
        result = judge("trace", ground, "0", str(traced_count(ground, scale)), check=True)
        (TRACES / f"{ground}.txt").write_text(result.stdout)
        print(f"{ground}: {len(Trace(ground).reached)} points", flush=True)
    in_parallel(grounds(), one)


def read_traces():
    return [Trace(ground) for ground in grounds() if (TRACES / f"{ground}.txt").exists()]


def plan(mutant, traces, limit):
    """The runs in which a mutant goes another way: from each plain ground one, then one of some harsher ones, and anew.

    Which harsher grounds come first is drawn by the mutant's name, so that all of them have their turn. The explorer's
    runs come behind them, for each takes as long as fifty others, and then the stories, which are no judges of promises,
    but say that something is not as people have read it.
    """
    rows = {trace: seeds_of(mutant, trace) for trace in traces if mutant.key in trace.seen}
    last = [(trace.ground, seed, trace.runs[seed])
            for ground in ("explorer", "stories") for trace, seeds in rows.items() if trace.ground == ground
            for seed in seeds]
    plain = [trace for trace in rows if trace.ground in (*PLAIN, "swarm")]
    harsh = [trace for trace in rows if "+" in trace.ground]
    random.Random(mutant.name).shuffle(harsh)
    step = max(len(plain), 4)
    turns = [harsh[start:start + step] for start in range(0, len(harsh), step)] or [[]]
    taken, runs = collections.Counter(), []
    for turn in range(max((len(seeds) for seeds in rows.values()), default=0) * len(turns)):
        for trace in plain + turns[turn % len(turns)]:
            if taken[trace] < len(rows[trace]):
                seed = rows[trace][taken[trace]]
                runs.append((trace.ground, seed, trace.runs[seed]))
                taken[trace] += 1
        if len(runs) >= limit:
            break
    return runs[:limit] + last


def seeds_of(mutant, trace):
    """The runs of a ground in which a mutant goes another way.

    A static constant is worked out once in a process, so that the trace has seen it in one run only: any does.
    """
    seeds = trace.seen[mutant.key]
    isStatic = len(seeds) == 1 and "(" not in mutant.place and "+" not in trace.ground
    return list(trace.runs)[:40] if isStatic else seeds


def known(place, traces):
    """The run that a ground and a seed mean, in a list; none where it is not traced."""
    return [(trace.ground, place[1], trace.runs[place[1]])
            for trace in traces if place and trace.ground == place[0] and place[1] in trace.runs]


class Verdict(collections.namedtuple("Verdict", "ground seed rule runs others")):
    """Who has noticed, in which run, by which rule; else how many runs there were, and how many went another way."""

    @property
    def isNoticed(self):
        return bool(self.ground)


NOBODY = Verdict("", 0, "", 0, 0)


def attempt(mutant, runs):
    """Runs a mutant until somebody notices.

    `runs` are grounds, seeds, and the hashes of what they come to without it.
    """
    text = "".join(f"{ground} {seed} {digest}\n" for ground, seed, digest in runs)
    result = judge("try", mutant.point, mutant.number, input=text)
    lines = result.stdout.splitlines()
    begun = [line.split()[1:] for line in lines if line.startswith("begin")]
    if result.returncode > 0:
        raise RuntimeError(f"{mutant.title}: {result.stderr}")
    rule = lines[-1].split()[1] if lines and lines[-1].startswith("noticed") else ""
    if result.returncode < 0:
        rule = SIGNALS.get(-result.returncode, "trap")
    ground, seed = begun[-1] if rule and begun else ("", "0")
    return Verdict(ground, int(seed), rule, len(begun), lines.count("other"))


# The tests of the logic


def bundle(*arguments, **environment):
    return subprocess.run(
        [BUILT / "judgePackageTests.xctest", "--testing-library", "swift-testing", *arguments],
        capture_output=True, text=True, timeout=300, env={**os.environ, **environment})


def write_test_traces():
    """Runs each suite alone, without a mutant, and notes what it reaches and how long it takes."""
    TESTS.mkdir(parents=True, exist_ok=True)
    names = bundle("--list-tests").stdout.splitlines()
    suites = sorted({name.split("/")[0].split("(")[0] for name in names if "." in name})

    def one(suite):
        began = time.time()
        result = bundle("--filter", f"^{re.escape(suite)}/", MUTATION_TRACE=str(TESTS / f"{suite}.points"))
        if result.returncode:
            sys.exit(f"{suite} fails without any mutant:\n{result.stdout[-2000:]}")
        (TESTS / f"{suite}.seconds").write_text(f"{time.time() - began:.2f}")
    in_parallel(suites, one)
    print(f"{len(suites)} suites")


class Suite:
    def __init__(self, name):
        self.name = name
        self.seconds = float((TESTS / f"{name}.seconds").read_text())
        self.seen = set()
        for line in (TESTS / f"{name}.points").read_text().splitlines():
            point, notes = map(int, line.split())
            self.seen.update((point, bit - 1) for bit in (1, 2) if notes >> bit & 1)


def read_suites():
    suites = [Suite(path.stem) for path in TESTS.glob("*.points")]
    return sorted(suites, key=lambda suite: suite.seconds)


def attempt_tests(mutant, suites):
    """Runs the suites that reach a mutant, the quickest first, until one fails."""
    count = 0
    for suite in suites:
        if mutant.key not in suite.seen:
            continue
        count += 1
        try:
            code = bundle("--filter", f"^{re.escape(suite.name)}/", MUTANT=f"{mutant.point},{mutant.number}").returncode
        except subprocess.TimeoutExpired:
            code = 1
        if code:
            return Verdict("tests", 0, suite.name.split(".")[-1], count, 0)
    return NOBODY._replace(runs=count)


# What was found out


def read_verdicts(path=VERDICTS):
    """By name: the verdict of the worlds and that of the tests."""
    verdicts = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            name, judge, ground, seed, rule, runs, others = line.split("\t")
            verdicts[name, judge] = Verdict(ground, int(seed), rule, int(runs), int(others))
    return verdicts


class Ledger:
    """Writes verdicts as they come, and tells how far it is."""

    def __init__(self, judge, total):
        self.file = open(VERDICTS, "a", encoding="utf-8")
        self.judge, self.total, self.done, self.noticed = judge, total, 0, 0
        self.began, self.lock, self.told = time.time(), threading.Lock(), 0

    def add(self, mutant, verdict):
        with self.lock:
            self.file.write("\t".join((mutant.name, self.judge, *map(str, verdict))) + "\n")
            self.file.flush()
            self.done += 1
            self.noticed += verdict.isNoticed
            if time.time() - self.told > (1 if sys.stdout.isatty() else 60) or self.done == self.total:
                self.told = time.time()
                self.tell()

    def tell(self):
        left = (time.time() - self.began) / self.done * (self.total - self.done) / 60
        part = 30 * self.done // self.total
        end = "\r" if sys.stdout.isatty() and self.done < self.total else "\n"
        print(f"{self.judge} [{'#' * part}{'.' * (30 - part)}] {self.done} of {self.total}, {self.noticed} noticed, "
              f"{left:.0f} min left   ", end=end, flush=True)
