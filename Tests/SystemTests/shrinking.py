"""A few operations of a history that contradict each other, told in plain sentences.

What is forgotten must never make a contradiction where there was none. So only these things are done: what an answer
says is forgotten, in whole or in part; what was answered after the end becomes one that may have happened, or not;
and an operation goes only where nothing that is left depends on it.
"""

import dataclasses
import time

import linearizability
from history import NEVER
from steps import COUNTS, Told

BUDGET = 30_000
"""Work for each try; one that needs more is taken for no contradiction."""
SECONDS = 30
"""Of processor time, after which what is left is small enough."""


class Shrinker:
    """Makes steps fewer that are known to contradict each other."""

    def __init__(self, steps, peer_count):
        self.steps, self.peer_count, self.end = steps, peer_count, time.process_time() + SECONDS

    def run(self):
        verdict = linearizability.check_steps(self.steps, self.peer_count)
        assert verdict.kind == "contradiction", "only what is a contradiction is made smaller"
        self._cut(self.steps[verdict.at].ret)
        # Downloads first: where they matter, all that a peer has ever said does.
        for name in reversed(COUNTS):
            self._try([dataclasses.replace(step, told=tuple(
                dataclasses.replace(told, **{name: None}) for told in step.told)) for step in self.steps])
        self._drop()
        self._in_parts(lambda: [number for number, step in enumerate(self.steps) if says(step)], self._silenced)
        self._drop()
        self._in_parts(self._words, self._without_words)
        self._drop()
        return self.steps

    def _is_contradiction(self, steps):
        if time.process_time() > self.end:
            return False
        return linearizability.check_steps(steps, self.peer_count, BUDGET).kind == "contradiction"

    def _try(self, steps):
        if not self._is_contradiction(steps):
            return False
        self.steps = steps
        return True

    def _cut(self, end):
        """Nothing behind the answer that nobody could explain any more; what was answered later may have happened."""
        kept = []
        for step in self.steps:
            if step.call > end or step.ret > end and step.peer is None:
                continue
            kept.append(dataclasses.replace(step, ret=NEVER, told=()) if step.ret > end else step)
        self.steps = kept

    def _in_parts(self, find, without):
        """Leaves out what it can of what `find` finds: halves, quarters, … and then one by one."""
        size = max(len(find()) // 2, 1)
        while True:
            items, place = find(), 0
            while place < len(items):
                part = items[place:place + size]
                if not self._try(without(part)):
                    place += size
                    continue
                items = items[:place] + items[place + size:]
            if size == 1:
                return
            size //= 2

    def _silenced(self, numbers):
        numbers = set(numbers)
        return [dataclasses.replace(step, told=()) if number in numbers else step
                for number, step in enumerate(self.steps)]

    def _words(self):
        """Each thing that an answer says: (step, answer, what, of whom)."""
        words = []
        for number, step in enumerate(self.steps):
            for answer, told in enumerate(step.told):
                words += [(number, answer, name, None) for name in COUNTS if getattr(told, name) is not None]
                for name in ("listed", "unlisted"):
                    words += [(number, answer, name, peer) for peer in sorted(getattr(told, name))]
        return words

    def _without_words(self, words):
        steps = list(self.steps)
        for number, answer, name, peer in words:
            told = list(steps[number].told)
            rest = None if peer is None else getattr(told[answer], name) - {peer}
            told[answer] = dataclasses.replace(told[answer], **{name: rest})
            steps[number] = dataclasses.replace(steps[number], told=tuple(told))
        return steps

    def _drop(self):
        """Leaves out what no answer that is left depends on."""
        telling = [step for step in self.steps if says(step)]
        counted = {name for step in telling for name, count in zip(COUNTS, step.counts) if count is not None}
        named = {peer for step in telling for peer, _ in step.allowed}

        def matters(step):
            if says(step):
                return True
            if step.peer is None:
                return False
            if not counted & {"seeders", "leechers"} and step.peer not in named:
                if not counted or not any(other.peer == step.peer and other.effect[0] == "completed"
                                          for other in self.steps):
                    return False
            return bool("completed" in counted) or not self._is_overwritten(step, telling)
        self._try([step for step in self.steps if matters(step)])

    def _is_overwritten(self, step, telling):
        """Whether a later announce of the same peer hides it from all who tell what they saw."""
        for later in self.steps:
            if later.peer != step.peer or later.ret == NEVER or later.call <= step.ret:
                continue
            if all(other.peer == step.peer or other.call > later.ret or other.ret < step.call for other in telling):
                return True
        return False


def says(step):
    return any(told.says_something() for told in step.told)


# In words

def sentences(history, everything, steps, peers):
    """What is left of all steps, a line for each, and last what is wrong with it."""
    only_downloads = not any(told.listed or told.unlisted for step in steps for told in step.told) and not any(
        count is not None for step in steps for count in step.counts[:2])
    # Where only downloads matter, all other words of their peers are there, and say no more to people. What has no
    # answer was tried at every moment.
    shown = [step for step in steps if says(step) or step.ret != NEVER and (
        not only_downloads or step.effect[0] == "completed")]
    lines = [sentence(history, step, peers) for step in sorted(shown, key=lambda step: (step.call, step.ret))]
    open_count = sum(step.ret == NEVER for step in steps)
    if open_count:
        lines.append(f"({open_count} announces without an answer until then, which may have taken effect at any time "
                     "or never, do not explain it, either.)")
    if (left_out := len(steps) - len(shown) - open_count):
        lines.append(f"({left_out} other announces of these peers are left out here.)")
    lines.append("No order of these operations, each at a moment between its request and its reply, explains what was "
                 "told.")
    verdict = linearizability.check_steps(steps, len(peers), BUDGET)
    if verdict.kind == "contradiction":
        lines += reasons(everything, steps[verdict.at], peers)
    return lines


def sentence(history, step, peers):
    operation = history.operations[step.operation]
    where = "the group" if history.entry == "group" else f"tracker {operation.sent[0][1]}"
    when = f"{step.call:.6f} to {step.ret:.6f} s"
    if operation.kind == "scrape":
        act = f"{operation.client} asks {where} for the counts"
    else:
        state = "" if operation.event == "stopped" else ", as a seeder" if step.effect[2] else ", as a leecher"
        event = "" if operation.event == "none" else f' "{operation.event}"'
        act = f"{operation.peer} announces{event}{state} to {where}"
    told = " and ".join(filter(None, (words(told, peers) for told in step.told)))
    return f"{when}: {act}, and is told {told}." if told else f"{when}: {act}, and is answered."


def words(told, peers):
    """What an answer says, as far as it matters."""
    parts = [f"{count} {name}" for name in ("seeders", "leechers")
             if (count := getattr(told, name)) is not None]
    if told.completed is not None:
        parts.append(f"{told.completed} completed downloads")
    parts = [f"of {' and '.join(parts)}"] if parts else []
    parts += [f"of {peers[peer]}" for peer in sorted(told.listed)]
    parts += [f"of no {peers[peer]}" for peer in sorted(told.unlisted)]
    return ", ".join(parts)


def reasons(steps, last, peers):
    """What is wrong with the answer that nothing explains, given all steps, where it is of a kind that is well
    known.
    """
    found = []
    told = last.told[0] if last.told else Told()
    for peer in sorted(told.listed | told.unlisted):
        own = [step for step in steps if step.peer == peer and step.call < last.ret]
        stops, comes = [[step for step in own if (step.effect[0] == "stopped") == stopped] for stopped in (True, False)]
        if peer in told.unlisted:
            if is_last(comes, stops, last.call):
                found.append(f"{peers[peer]} had been answered before that was asked, and has not stopped since: "
                             "it is lost.")
        elif not comes:
            found.append(f"Nobody has announced {peers[peer]} before that was told.")
        elif is_last(stops, comes, last.call):
            found.append(f"{peers[peer]} had stopped before that was asked, and nothing has brought it back.")
    if told.completed is not None:
        most = sum(step.effect is not None and step.effect[0] == "completed" and step.call < last.ret for step in steps)
        if told.completed > most:
            found.append(f"{most} downloads were told to be complete by then, and {told.completed} are counted.")
        before = max((one.completed for step in steps if step.ret < last.call for one in step.told
                      if one.completed is not None), default=0)
        if told.completed < before:
            found.append(f"{before} downloads had been told before that was asked: the count has gone back.")
    return found


def is_last(words, others, time):
    """Whether one of these was answered before a time, and all of the others before it was asked."""
    return any(word.ret < time and all(other.ret < word.call for other in others) for word in words)
