#!/usr/bin/env python3
"""Tries the mutants of the logic, and says who notices them.

    mutants.py trace                 which mutants the simulated worlds reach, and the tests (minutes)
    mutants.py run [--runs N]        tries each that is reached, until somebody notices it (hours); goes on where it was
    mutants.py report                writes docs/mutants.md, and noticed.tsv beside this
    mutants.py sample [--seed S]     tries a hundred that were noticed once more; fails where one is noticed no more
    mutants.py show NAME             one mutant, and how to look at it

`build` in this folder makes what this needs: the logic with all its mutants, and `judge`, which runs the simulator with
one of them alive. What is found out is kept in .build; a mutant has a name that stays while what it is in stays, so a
run goes on where it was interrupted, and after a change of the logic, too.
"""

import argparse
import random
import sys

import judges
import report

NOTICED = judges.HERE / "noticed.tsv"


def trace(options):
    if not options.tests:
        judges.write_traces(options.scale)
    if not options.worlds:
        judges.write_test_traces()


def run(options):
    mutants = [mutant for mutant in judges.read_mutants() if options.file in mutant.file]
    if options.count:
        mutants = random.Random(2).sample(mutants, min(options.count, len(mutants)))
    traces, verdicts, noticed = judges.read_traces(), judges.read_verdicts(), read_noticed()
    excused = {name for name, (kind, _) in report.read_reasons().items() if kind != "hole"}
    waiting = []
    for mutant in mutants:
        before = verdicts.get((mutant.name, "worlds"))
        if options.tried and (not before or mutant.name in excused):
            continue
        if options.again and before and not before.isNoticed:
            before = None
        runs = judges.plan(mutant, traces, options.runs)
        if options.tried:
            # The explorer and the stories have no further runs.
            runs = [run for run in runs if run[0] not in ("explorer", "stories")]
        if runs and (not before or not before.isNoticed and before.runs < len(runs)):
            # Who has noticed it before is asked first.
            known = judges.known(noticed.get(mutant.name), traces)
            waiting.append((mutant, known + [run for run in runs if run not in known]))
    # In no order, so that the first of them stand for all.
    random.Random(1).shuffle(waiting)
    ledger = judges.Ledger("worlds", len(waiting))

    def world(job):
        mutant, runs = job
        ledger.add(mutant, judges.attempt(mutant, runs))
    if not options.tests:
        judges.in_parallel(waiting, world)
    if options.worlds:
        return
    verdicts, suites = judges.read_verdicts(), judges.read_suites()
    # Those that would go no other way in any world are tried by the tests once all others have been tried.
    isWhole = not options.tests
    waiting = [
        mutant for mutant in mutants
        if ((mutant.name, "worlds") in verdicts or isWhole)
        and not verdicts.get((mutant.name, "worlds"), judges.NOBODY).isNoticed
        and (options.again or (mutant.name, "tests") not in verdicts)
        and not verdicts.get((mutant.name, "tests"), judges.NOBODY).isNoticed
        and any(mutant.key in suite.seen for suite in suites)]
    random.Random(1).shuffle(waiting)
    tests = judges.Ledger("tests", len(waiting))
    judges.in_parallel(waiting, lambda mutant: tests.add(mutant, judges.attempt_tests(mutant, suites)))


def write_report(options):
    report.write(judges.read_mutants(), judges.read_traces(), judges.read_verdicts(), NOTICED)


def read_noticed():
    with open(NOTICED, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    return {name: (ground, int(seed)) for name, ground, seed in lines}


def sample(options):
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1_000_000)
    noticed = read_noticed()
    mutants = [mutant for mutant in judges.read_mutants() if mutant.name in noticed]
    drawn = random.Random(seed).sample(mutants, min(options.count, len(mutants)))
    print(f"{len(drawn)} mutants of {len(mutants)}, drawn by the seed {seed}", flush=True)
    if not drawn:
        sys.exit("none of the mutants of noticed.tsv is in the logic any more: make mutants")
    lost = []

    def one(mutant):
        ground, number = noticed[mutant.name]
        # Where the logic has changed since, the seed may mean another run; then others of its ground do as well.
        runs = [(ground, number, "0")] + [(ground, other, "0") for other in range(30)]
        if ground == "explorer":
            runs = [("explorer", other, "0") for other in range(6)]
        else:
            runs += [(plain, other, "0") for plain in judges.PLAIN for other in range(8)]
        if not judges.attempt(mutant, runs).isNoticed:
            lost.append(mutant)
    judges.in_parallel(drawn, one)
    for mutant in lost:
        print(f"noticed no more: {mutant.name}, {mutant.title}")
        print(f"  it was by {noticed[mutant.name][0]}, seed {noticed[mutant.name][1]}")
    print(f"{len(drawn) - len(lost)} of {len(drawn)} are noticed")
    sys.exit(1 if lost else 0)


def show(options):
    found = [mutant for mutant in judges.read_mutants() if mutant.name == options.name]
    if not found:
        sys.exit(f"no mutant is named {options.name}")
    mutant, verdicts = found[0], judges.read_verdicts()
    print(f"{mutant.name}: {mutant.kind}, {mutant.title}")
    for judge in ("worlds", "tests"):
        verdict = verdicts.get((mutant.name, judge))
        if verdict and verdict.isNoticed:
            print(f"  noticed by {verdict.ground}, seed {verdict.seed}: {verdict.rule}")
        elif verdict:
            print(f"  {judge}: not noticed in {verdict.runs} runs, of which {verdict.others} went another way")
    print(f"  echo GROUND SEED 0 | {judges.BUILT / 'judge'} try {mutant.point} {mutant.number}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name, do, text):
        made = commands.add_parser(name, help=text)
        made.set_defaults(do=do)
        return made
    made = command("trace", trace, "which mutants are reached")
    made.add_argument("--scale", type=float, default=1, help="how many times 2,000 scenarios")
    made.add_argument("--worlds", action="store_true", help="only by simulated worlds")
    made.add_argument("--tests", action="store_true", help="only by the tests of the logic")
    made = command("run", run, "tries each mutant")
    made.add_argument("--runs", type=int, default=300, help="runs of simulated worlds for each, at most")
    made.add_argument("--file", default="", help="only those in files whose names have this in them")
    made.add_argument("--count", type=int, help="only so many of them, drawn at random, and always the same")
    made.add_argument("--worlds", action="store_true", help="only in simulated worlds")
    made.add_argument("--tests", action="store_true", help="only by the tests, those that no world has noticed")
    made.add_argument("--tried", action="store_true",
                      help="only those that were tried before, and have no reason but a hole")
    made.add_argument("--again", action="store_true", help="also those that nobody has noticed before")
    command("report", write_report, "writes docs/mutants.md")
    made = command("sample", sample, "tries a hundred that were noticed once more")
    made.add_argument("--seed", type=int, help="which are drawn; another one each time where it is not said")
    made.add_argument("--count", type=int, default=100)
    made = command("show", show, "one mutant")
    made.add_argument("name")
    options = parser.parse_args()
    judges.check_built()
    options.do(options)


if __name__ == "__main__":
    main()
