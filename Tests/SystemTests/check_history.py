"""Checks a history again that a run has written to a file, and tells in plain sentences what is wrong with it.

    /usr/bin/python3 Tests/SystemTests/check_history.py FILE [--work N]

The exit code is 0 where all is well, 1 where a promise is broken, 2 where the file is no history, and 3 where the history
is undecided within the work that may be done.
"""

import argparse
import sys

import forms
import linearizability
import shrinking
from history import History, Malformed


def explain(history):
    """The sentences that say what is wrong with a history that is a contradiction."""
    peers = linearizability.peers_of(history)
    steps = linearizability.steps_of(history, peers)
    smaller = shrinking.Shrinker(steps, len(peers)).run()
    lines = [f"{len(steps)} operations; {len(smaller)} of them contradict each other:"]
    lines += [f"  {line}" for line in shrinking.sentences(history, steps, smaller, peers)]
    begin, end = min(step.call for step in smaller), max(step.call for step in smaller)
    lines += [f"  Meanwhile, {since:.1f} to {until:.1f} s: {what}." for since, until, what in history.marks
              if since <= end and until >= begin]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--work", type=int, default=linearizability.WORK,
                        help="attempts to let an operation happen, after which a history is undecided (default: %(default)s)")
    options = parser.parse_args()
    try:
        history = History.read(options.file)
    except (Malformed, OSError, UnicodeDecodeError) as problem:
        print(problem, file=sys.stderr)
        return 2
    verdict = linearizability.check(history, options.work)
    print(f"{len(history.operations)} operations on swarm {history.swarm}, {verdict.work} attempts: {verdict.kind}")
    problems = forms.faults(history)
    if verdict.kind == "contradiction":
        problems += explain(history)
    print(*problems, sep="\n")
    return 1 if problems else {"linearizable": 0, "undecided": 3}[verdict.kind]


if __name__ == "__main__":
    sys.exit(main())
