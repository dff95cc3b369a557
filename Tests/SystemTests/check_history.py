"""Checks a history again that a run has written to a file, and tells in plain sentences what is wrong with it.

    /usr/bin/python3 Tests/SystemTests/check_history.py FILE [--work N] [--strict]

The exit code is 0 where all is well, 1 where a promise is broken, 2 where the file is no history, and 3 where the
history is undecided within the work that may be done.
"""

import argparse
import sys
import time

import forms
import linearizability
import shrinking
import survivors
from history import History, Malformed
from steps import peers_of, steps_of


def explain(history):
    """The sentences that say what is wrong with a history that is a contradiction."""
    peers = peers_of(history)
    steps = steps_of(history, peers)
    smaller = shrinking.Shrinker(steps, len(peers)).run()
    lines = [f"{len(steps)} operations; {len(smaller)} of them contradict each other:"]
    lines += [f"  {line}" for line in shrinking.sentences(history, steps, smaller, peers)]
    begin, end = min(step.call for step in smaller), max(step.call for step in smaller)
    lines += [f"  Meanwhile, {since:.1f} to {until:.1f} s: {what}." for since, until, what in history.marks
              if since <= end and until >= begin]
    return lines


def judge(history, work=linearizability.WORK, is_strict=False):
    """(what is wrong with a history, in sentences; whether something is undecided)."""
    problems = forms.faults(history)
    if history.mode == "survivor":
        found, is_undecided = survivors.check(history, work, is_strict)
        return problems + found, is_undecided
    verdict = linearizability.check(history, work)
    if verdict.kind == "contradiction":
        problems += explain(history)
    if not verdict.is_whole:
        print("Who is there is right; whether all counts of downloads are is undecided.")
    return problems, verdict.kind == "undecided"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--work", type=int, default=linearizability.WORK,
                        help="attempts to let an operation happen, after which a history is undecided "
                             "(default: %(default)s)")
    parser.add_argument("--strict", action="store_true",
                        help="in survivor mode, do not allow for the late copies that are known to come")
    options = parser.parse_args()
    try:
        history = History.read(options.file)
    except (Malformed, OSError, UnicodeDecodeError) as problem:
        print(problem, file=sys.stderr)
        return 2
    problems, is_undecided = judge(history, options.work, options.strict)
    verdict = "a promise is broken" if problems else "undecided" if is_undecided else "all is well"
    print(f"{len(history.operations)} operations on swarm {history.swarm}, {history.profile}: {verdict} "
          f"({time.process_time():.2f} s of processor time)")
    print(*problems, sep="\n")
    return 1 if problems else 3 if is_undecided else 0


if __name__ == "__main__":
    sys.exit(main())
