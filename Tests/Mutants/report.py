"""Writes docs/mutants.md: how many mutants are noticed, by whom, and why the others are not."""

import collections

import judges

DOCUMENT = judges.HERE.parent.parent / "docs" / "mutants.md"
REASONS = judges.HERE / "reasons.tsv"
KINDS = {"equivalent": "equivalent", "unpromised": "not promised", "hole": "a hole"}


def read_reasons():
    """Why a mutant is not noticed, by its name: what kind of reason that is, and the reason."""
    reasons = {}
    if REASONS.exists():
        for line in REASONS.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                name, kind, reason = line.split("\t")
                reasons[name] = (kind, reason)
    return reasons


class Score:
    """How many of some mutants are reached, and noticed, by whom."""

    def __init__(self):
        self.all = self.reached = self.tried = self.worlds = self.explorer = self.stories = self.tests = 0
        self.reasons = collections.Counter()

    @property
    def noticed(self):
        return self.worlds + self.explorer + self.stories + self.tests

    @property
    def judged(self):
        """Those that were tried, or that no run would have gone another way with, and that could be noticed."""
        return self.tried - self.reasons["equivalent"] - self.reasons["unpromised"]


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "–"


def table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(head) + " |", "|" + " --- |" * len(head), *lines])


class Report:
    def __init__(self, mutants, traces, verdicts):
        self.mutants, self.verdicts, self.reasons = mutants, verdicts, read_reasons()
        self.reached = set().union(*(trace.reached for trace in traces))
        self.seen = set().union(*(set(trace.seen) for trace in traces))
        self.runs = sum(len(trace.runs) for trace in traces)
        self.scores, self.kinds = collections.defaultdict(Score), collections.defaultdict(Score)
        self.total, self.rules, self.survivors = Score(), collections.Counter(), []
        self.points = {int(mutant.point) for mutant in mutants}
        # As long as not all were tried, those with which no run goes another way would weigh too much.
        self.isWhole = all(self.verdict(mutant) for mutant in mutants if mutant.key in self.seen)
        for mutant in mutants:
            self.count(mutant)

    def verdict(self, mutant):
        """Who has noticed it; of nobody, the one of the worlds, None where no run was tried."""
        worlds, tests = (self.verdicts.get((mutant.name, judge)) for judge in ("worlds", "tests"))
        return tests if tests and tests.isNoticed else worlds

    def count(self, mutant):
        verdict = self.verdict(mutant)
        isReached = int(mutant.point) in self.reached
        isTried = isReached and (verdict is not None or self.isWhole)
        kind, _ = self.reasons.get(mutant.name, ("", ""))
        for score in (self.total, self.scores[mutant.file], self.kinds[mutant.kind]):
            score.all += 1
            score.reached += isReached
            score.tried += isTried
            if verdict and verdict.isNoticed:
                score.tests += verdict.ground == "tests"
                score.explorer += verdict.ground == "explorer"
                score.stories += verdict.ground == "stories"
                score.worlds += verdict.ground not in ("tests", "explorer", "stories")
            elif isTried:
                score.reasons[kind] += 1
        if verdict and verdict.isNoticed:
            self.rules[verdict.rule if verdict.ground != "tests" else "tests of the logic"] += 1
        elif isTried:
            self.survivors.append(mutant)

    def extent(self):
        """How many were tried."""
        alike = sum(mutant.key not in self.seen and int(mutant.point) in self.reached for mutant in self.mutants)
        if self.isWhole:
            return (f"All that are reached were tried, but for {alike:,} with which no run would have gone another way: "
                    "they count as not noticed.")
        return (f"Tried so far: {self.total.tried:,}, drawn at random. With {alike:,} others no run would have gone another "
                "way: they will count as not noticed.")

    def silent(self):
        """How many of those not noticed changed no run that was tried."""
        return sum(not self.verdict(mutant) or not self.verdict(mutant).others for mutant in self.survivors)

    def row(self, name, score):
        return (name, score.all, score.reached, score.tried, score.worlds, score.explorer, score.stories, score.tests,
                score.reasons["equivalent"], score.reasons["unpromised"],
                score.reasons["hole"] + score.reasons[""], percent(score.noticed, score.judged))

    HEAD = ("mutants", "all", "reached", "tried", "worlds", "explorer", "stories", "tests", "equivalent", "not promised", "open", "noticed")

    def blind(self):
        spots = collections.Counter()
        for file, point in {(mutant.file, int(mutant.point)) for mutant in self.mutants}:
            if point not in self.reached:
                spots[file] += 1
        return [(file, count) for file, count in sorted(spots.items(), key=lambda item: (-item[1], item[0]))]

    def survivor_rows(self):
        for mutant in self.survivors:
            kind, reason = self.reasons.get(mutant.name, ("", ""))
            verdict = self.verdict(mutant)
            if not reason:
                reason = ("no run went another way" if not verdict or not verdict.others
                          else f"{verdict.others} of {verdict.runs} runs went another way")
            change = f"`{mutant.before}` → `{mutant.after}`" if mutant.after else f"without `{mutant.before}`"
            yield (f"{mutant.name}", f"{mutant.file.split('/', 1)[1]}:{mutant.line}", change.replace("|", "\\|"),
                   KINDS.get(kind, "open"), reason)

    def text(self):
        total = self.total
        alone = total.worlds + total.explorer
        excused = total.reasons["equivalent"] + total.reasons["unpromised"]
        points = len(self.points & self.reached)
        return f"""{HEAD}
## The figures

- Points of mutation: {len(self.points):,}, with {total.all:,} mutants. The {self.runs:,} runs of the worlds reach \
{percent(points, len(self.points))} of the points, and with them {total.reached:,} mutants.
- {self.extent()}
- Noticed, of all that were tried: {percent(total.noticed, total.tried)} (the raw figure).
- Noticed, of those that were tried, and are neither equivalent nor about something that is promised nowhere: \
**{percent(total.noticed, total.judged)}**; by the simulator's checkers and the explorer alone \
{percent(alone, total.judged)}.
- Those two kinds are {percent(excused, total.tried)} of what was tried.
- Of the {len(self.survivors):,} that nobody has noticed, {self.silent():,} changed nothing that a tracker or a peer did in any run: the \
condition was another one, and nothing came of it. They count as not noticed.

{table(self.HEAD, [self.row(kind, score) for kind, score in sorted(self.kinds.items())] + [self.row("**all**", total)])}

## By file

{table(("file",) + self.HEAD[1:], [self.row(file, score) for file, score in sorted(self.scores.items())])}

## Who noticed

{table(("rule", "mutants"), self.rules.most_common())}

`transcript`: a story of `Tests/SimulationTests/Transcripts` is not told as people have read it; `trap` is a precondition or an overflow of the logic itself; `endless`, a step without end.

## Where no world comes

Points of mutation that no run of the worlds reaches, by file:

{table(("file", "points"), self.blind())}

## Not noticed

*equivalent*: nothing can be told from outside. *not promised*: something is otherwise, and no document says how it must be. *open*: not
looked into yet.

{table(("name", "place", "what it does", "kind", "why it is not noticed"), self.survivor_rows())}
"""


HEAD = """# Mutants

How good is the simulator at mistakes that nobody has planted? A machine makes them: `make mutants` reads the sources of the logic
(`TrackerLogic`, `PeerLogic`), and writes one copy of them in which each small mistake is a choice by one number, so that one build
holds them all. Then simulated worlds, the explorer's small clusters, the stories that people have read and the tests of the logic judge each of them,
one after another, until one says that something is wrong. It takes hours, says how far it is, and goes on where it was interrupted.

Mistakes are made in ten ways: a relation changed (`<` to `<=` or `>=`, `==` to `!=`), a condition negated, a condition or a part of one that
always holds or never does, a side of `&&` or `||` dropped, a statement left out, a function that goes back at once, a number one more or one
less (or a truth the other one), two arguments of one type in each other's place, a case of an enumeration exchanged, `min` for `max`.
Left alone is what decides nothing: descriptions, what tests and the explorer look at, room that is made ahead, kept or given back, numbers
of four digits and more, and whether two moments are the same to the nanosecond. `Tests/Mutants/Sources/mutate` has the rules.

`make test` draws a hundred of those that were noticed (`Tests/Mutants/noticed.tsv`, with the run that did it), and fails where one
is noticed no more. `Tests/Mutants/mutants.py show NAME` tells of one.

## What they have found

Whoever reads why a mutant was not noticed reads the logic as nobody has before. Mistakes that were there without any mutant, mended:

- a voter said that it cannot store an entry which it was writing, so that an entry might be decided after its clients were told that it was not (rule 15);
- a note of an orderly stop that could not be taken back was forgotten, and the tracker voted with it on its disk (rule 22);
- in a merge of two sides an account or torrent file that was removed and made anew in one second could be lost, and a removal did not reach whom the thing was not known to;
  a chunk that came late took the place of the updates of the one before it; an upload under way on both sides was dropped as idle; what came from files took the place of an upload (rules 12 and 25);
- two ways to be refused passed by the limit of errors of an address (rule 19);
- a peer that was told late that it has completed told no `stopped`; told a second `completed` after a loss; announced after two minutes, not one, when it had no connection; asked the
  only one that had refused it the metadata again at once, at line speed; asked nobody anew in the endgame; did not tell its tracker when a straggler made it whole (rules 28, 31 and 33);
- a limit of a rate lost a part of a byte each time that it was looked at (rule 30);
- a tracker whose fetching of the state came to nothing kept the index up to which that would have gone, and took its old state for the whole as soon as that went as far (rule 17);
- in a group, requests that a state holds as settled were noted once more by the log behind it, and took the room of others (rule 11);
- a peer was called again every half minute though it was connected, for it had called us while we called it; what one peer alone was to give was not asked of others at once
  when that one choked, or had lost it, or owed nothing more of it (rules 28 and 31);
- a merge took in a part of an entry each quarter of a keepalive, not of each entry: where entries are small, the last of four sides answered nobody for twenty seconds;
  a mark of the whole state that could not be written was tried again with the next HELLO only, however far that was.

New checkers, of which each was shown to notice the mutants that it is for, and worlds that meet them: sides of merges, refusing votes, errors by address, letting in at a limit,
audits of the request book, of accounts, torrent files and what is kept for merges, what people are told, farewells, windows and endgames of peers; who gives and takes numbers, and
what is told of one's own part; what is sent on and answered in groups, questions that are asked again, states that are fetched, candidates that have to end, intervals and passkeys
by a reading of their own; who is called again and when, culprits, lone pieces. `beginnings`, `slips`, `laggards` and `silence` are worlds for them.

A mutant that nobody can notice shows code that does nothing. Seventy of them went with the conditions that a callee looks at itself, values that are set before
they are read, and elements that were made up to be searched for; the reasons of three did not hold, so that code stayed.
"""


def write(mutants, traces, verdicts, noticed):
    report = Report(mutants, traces, verdicts)
    DOCUMENT.write_text(report.text(), encoding="utf-8")
    lines = []
    for mutant in mutants:
        verdict = report.verdict(mutant)
        if verdict and verdict.isNoticed and verdict.ground != "tests":
            lines.append(f"{mutant.name}\t{verdict.ground}\t{verdict.seed}")
    head = "# Mutants that simulator or explorer notice: name, ground, seed (mutants.py report writes this)\n"
    noticed.write_text(head + "\n".join(sorted(lines)) + "\n", encoding="utf-8")
    total = report.total
    print(f"{total.noticed} noticed of {total.reached} reached of {total.all}; of those that could be, "
          f"{percent(total.noticed, total.judged)}, by simulator and explorer alone "
          f"{percent(total.worlds + total.explorer, total.judged)}: {DOCUMENT}")
