"""Whether a history of one swarm is linearizable: whether each announce and scrape may have happened at one moment
between its request and its reply, so that what all were told is what a single tracker would have told them.

The algorithm is Wing and Gong's search (*Testing and verifying concurrent objects*, 1993) in the form of Lowe
(*Testing for linearizability*, 2017): "just in time", with states that were seen before told apart by a set. The
history is walked in the order of time by configurations that explain it so far: (the swarm, which of the open
operations have happened, which unanswered ones have). Whenever a reply comes, a configuration is continued by open
operations until the one with the reply has happened. What has come furthest and has taken the fewest unanswered
announces for carried out goes on first. Where nothing is left, the furthest reply is the one that nothing explains.

What is right and changes nothing happens at once, which is no choice. Operations without an answer may happen at any
later time, or never, which would double the configurations with each. Two things that are true of swarms keep them
few. An unanswered announce changes its own peer only, and what different peers do commutes: so it happens only where
a reply demands it, or before another announce of the same peer. And of two configurations with equal swarms, the one
that has used up fewer unanswered announces explains all that the other does.

A swarm is what `Sources/Simulator/Checks/SwarmModel.swift` says, made small: who is there, as what, under which peer
id, whether its download was counted, and how many were. `WORK` bounds the work; beyond, the verdict is "undecided".
"""

import collections
import dataclasses
import functools
import heapq

from history import NEVER
from steps import ABSENT, ANY, LEECHER, SEEDER, peers_of, steps_of

WORK = 400_000
"""Attempts to let an operation happen, per history; a few seconds."""
PULLS = (0.3, 1, 0.1)
"""How much more a search takes for granted for each reply that it has come further: one after the other, where one
alone does not decide. Little goes back soon, much goes on for long; which is better depends on where the wrong turn
was.
"""


@dataclasses.dataclass(frozen=True)
class Verdict:
    """`kind` is "linearizable", "contradiction" or "undecided"; `at` is the step whose answer nothing explains."""
    kind: str
    work: int
    at: int | None = None
    is_whole: bool = True


class Undecided(Exception):
    """The budget is used up."""


# The swarm

@functools.lru_cache(maxsize=None)
def changed(value, effect):
    """What an announce makes of its peer, and how many downloads it counts.

    A peer is 0 where it is absent, else (peer id, whether it seeds, whether its download was counted).
    """
    event, peer_id, is_complete = effect
    if event == "stopped":
        return 0, 0
    if not peer_id:
        return ("", is_complete, False), 0  # Where downloads do not matter: `shown`.
    is_other = value != 0 and value[0] != peer_id
    was_counted = value != 0 and value[2]
    is_anew = event == "started" and not is_complete and is_other
    counts = event == "completed" and is_complete and not was_counted and not is_other
    came_complete = value == 0 and is_complete
    return (peer_id, is_complete, (was_counted and not is_anew) or counts or came_complete), int(counts)


def standing(value):
    return ABSENT if value == 0 else SEEDER if value[1] else LEECHER


@dataclasses.dataclass(frozen=True, eq=False)
class Option:
    """What unanswered announces of a peer may have made of it: `used` are their bits, `ancestors` the options on the
    way.
    """
    value: object
    count: int
    used: int
    ancestors: frozenset


# The search

@dataclasses.dataclass(frozen=True)
class Moment:
    """A reply: what had been asked by then."""
    step: int
    time: float
    open_steps: tuple  # Numbers of those that have been asked, and not answered before; the earliest answered first.
    loose: int  # The bits of announces that nobody will answer.
    expires: tuple  # From when on each peer that stays silent may be taken out.


def moments_of(steps, peer_count, loose_bits):
    """All replies, in the order of time."""
    shortest = min((step.interval for step in steps), default=NEVER)
    events = [(step.call, 0, number) for number, step in enumerate(steps)]
    events += [(step.ret, 1, number) for number, step in enumerate(steps) if step.ret != NEVER]
    moments, open_steps, loose, expires = [], {}, 0, [NEVER] * peer_count
    for time, is_return, number in sorted(events):
        step = steps[number]
        if is_return:
            by_reply = sorted(open_steps, key=lambda number: steps[number].ret)
            moments.append(Moment(number, time, tuple(by_reply), loose, tuple(expires)))
            del open_steps[number]
            # Whoever was heard again may not be taken out before its interval and a fifth have gone.
            if step.peer is not None and step.interval != NEVER:
                expires[step.peer] = step.call + 1.2 * step.interval
        elif step.ret == NEVER:
            loose |= loose_bits[number]
            expires[step.peer] = min(expires[step.peer], step.call + 1.2 * shortest)
        else:
            open_steps[number] = True
    return moments


class Search:
    """One walk over the steps of a history."""

    def __init__(self, steps, peer_count, budget=WORK, pull=PULLS[0]):
        self.steps, self.budget, self.pull, self.work = steps, budget, pull, 0
        self.loose = [[] for _ in range(peer_count)]  # Of each peer: (bit, effect) of what nobody has answered.
        self.masks = [0] * peer_count
        bits = {}
        for number, step in enumerate(steps):
            if step.ret == NEVER:
                bits[number] = 1 << len(bits)
                self.loose[step.peer].append((bits[number], step.effect))
                self.masks[step.peer] |= bits[number]
        self.moments = moments_of(steps, peer_count, bits)
        by_peer = [[number for number, step in enumerate(steps) if step.peer == peer] for peer in range(peer_count)]
        self.beside = {number: self._find_beside(number, by_peer, bits) for number, step in enumerate(steps)
                       if step.peer is not None and step.ret != NEVER}
        self.options_known = {}
        self.start = (0, 0, (0,) * peer_count, 0, 0)  # (place, completed, values, done, used)

    def run(self):
        """Goes on with what has come far and taken little for granted: what is left of the rest comes later."""
        seen, furthest, number = {}, 0, 0
        waiting = [(0.0, 0, iter([(0, self.start)]), 0)]  # (rank, number, what follows at which cost, cost so far)
        try:
            while waiting:
                _, _, following, so_far = waiting[0]
                one = next(following, None)
                if one is None:
                    heapq.heappop(waiting)
                    continue
                cost = so_far + one[0]
                place, completed, values, done, used = self._settled(*one[1])
                number += 1
                # What else follows comes when its turn is.
                heapq.heapreplace(waiting, (cost - self.pull * one[1][0], number, following, so_far))
                if place == len(self.moments):
                    return Verdict("linearizable", self.work)
                furthest = max(furthest, place)
                if _add(seen, (place, completed, values, done), used):
                    number += 1
                    more = self._continue(place, completed, values, done, used)
                    heapq.heappush(waiting, (cost - self.pull * place, number, more, cost))
        except Undecided:
            return Verdict("undecided", self.work)
        return Verdict("contradiction", self.work, self.moments[furthest].step)

    def _settled(self, place, completed, values, done, used):
        """Goes on as far as there is no choice.

        What is open, changes nothing and is right now may as well happen now: to wait for it explains nothing more.
        Not so where something else of the same peer may happen before it, so that it would change something then.
        """
        while place < len(self.moments):
            moment = self.moments[place]
            self._count()
            for number in self._idle(moment, completed, values, done):
                if self._is_alone(moment, number, done, used):
                    done |= 1 << number
            if not done >> moment.step & 1:
                break
            done ^= 1 << moment.step
            place += 1
        return place, completed, values, done, used

    def _idle(self, moment, completed, values, done):
        """Open steps that would be right now, and change nothing."""
        for number in moment.open_steps:
            step = self.steps[number]
            if not done >> number & 1 and self._is_right(step, completed, values) and (
                    step.peer is None or changed(values[step.peer], step.effect) == (values[step.peer], 0)):
                yield number

    def _is_alone(self, moment, number, done, used):
        """Whether nothing of the same peer can happen before a step that is open."""
        step = self.steps[number]
        if step.peer is None:
            return True
        loose, others = self.beside[number]
        return not loose & ~used and step.ret < moment.expires[step.peer] and all(
            done >> other & 1 or self.steps[other].ret < moment.time for other in others)

    def _find_beside(self, number, by_peer, bits):
        """What of the same peer may happen while a step is open: (bits of what nobody answers, other steps)."""
        own, loose, others = self.steps[number], 0, []
        for other in by_peer[own.peer]:
            step = self.steps[other]
            if other != number and step.call < own.ret and step.ret > own.call:
                if step.ret == NEVER:
                    loose |= bits[other]
                else:
                    others.append(other)
        return loose, others

    def _continue(self, place, completed, values, done, used):
        """(cost, configuration) of all that may come next: the step that is answered has happened, or another one
        before it.

        What changes nothing costs nothing. Else the cost is the announces that are taken for carried out without an
        answer, and one for a step that happens before it is answered.
        """
        moment = self.moments[place]
        if idle := sum(1 << number for number in self._idle(moment, completed, values, done)):
            yield 0, (place, completed, values, done | idle, used)
        for happen in (self._happen_plainly, self._happen_with_others):
            for number in moment.open_steps:
                if done >> number & 1:
                    continue
                for total, after, all_used in happen(moment, self.steps[number], completed, values, used):
                    cost = (all_used & ~used).bit_count()
                    if number == moment.step:
                        yield cost, (place + 1, total, after, done, all_used)
                    else:
                        yield cost + 1, (place, total, after, done | 1 << number, all_used)

    def _count(self, work=1):
        self.work += work
        if self.work > self.budget:
            raise Undecided

    def _happen_plainly(self, moment, step, completed, values, used):
        """What a step leads to where it is right by itself."""
        self._count()
        if step.peer is not None:
            value, count = changed(values[step.peer], step.effect)
            completed, values = completed + count, _with(values, step.peer, value)
        if self._is_right(step, completed, values):
            yield completed, values, used

    def _happen_with_others(self, moment, step, completed, values, used):
        """What a step leads to behind unanswered announces: any of its own peer, and the least that it needs of
        others.
        """
        own = step.peer
        variants = [(completed, values, used)]
        if own is not None:
            variants = []
            for option in self._options(moment, own, values[own], used):
                value, count = changed(option.value, step.effect)
                variants.append((completed + option.count + count, _with(values, own, value), used | option.used))
        # Of its own peer, all variants stand the same afterwards.
        if self._is_right(step, *variants[0][:2]):
            yield from variants[1:]
            return
        for changes, count, more in self._needed(moment, step, *variants[0]):
            for total, after, all_used in variants:
                for peer, value in changes:
                    after = _with(after, peer, value)
                yield total + count, after, all_used | more

    @staticmethod
    def _is_right(step, completed, values):
        """Whether what a step's answer says is so."""
        if step.is_torn or not all(allowed & standing(values[peer]) for peer, allowed in step.allowed):
            return False
        seeders, leechers, total = step.counts
        if seeders is None and leechers is None:
            return total in (None, completed)
        stands = [standing(value) for value in values]
        return seeders in (None, stands.count(SEEDER)) and leechers in (None, stands.count(LEECHER)) \
            and total in (None, completed)

    def _needed(self, moment, step, completed, values, used):
        """The least that other peers' unanswered announces must have done: (changes, downloads counted, bits)."""
        if step.is_torn:
            return
        allowed, choices, need = dict(step.allowed), [], list(step.counts)
        if need[2] is not None:
            need[2] -= completed
        for peer, value in enumerate(values):
            if peer != step.peer and self._may_change(moment, peer, used):
                options = self._options(moment, peer, value, used)
                choices.append((peer, _useful(options, allowed.get(peer, ANY), need[2] is not None)))
                continue
            stands = standing(value)
            if peer != step.peer and not allowed.get(peer, ANY) & stands:
                return
            for place, kind in enumerate((SEEDER, LEECHER)):
                if need[place] is not None and stands == kind:
                    need[place] -= 1
        least = []
        for chosen in self._choose(choices, need):
            if any(all(part is whole or part in whole.ancestors for part, whole in zip(other, chosen))
                   for other in least):
                continue
            least.append(chosen)
            yield ([(peer, option.value) for (peer, _), option in zip(choices, chosen) if option.ancestors],
                   sum(option.count for option in chosen),
                   functools.reduce(int.__or__, (option.used for option in chosen)))

    def _choose(self, choices, need):
        """All choices of an option for each peer that come to what is needed; those with the fewest announces
        first.
        """
        weights = [[(_weight(option, need), option) for option in options] for _, options in choices]
        # What can be reached from each place on: so nothing is tried in vain.
        reach = [{(0, 0, 0, 0)}]
        for options in reversed(weights):
            self._count(len(options) * len(reach[-1]) // 8 + 1)
            reach.append({tuple(map(int.__add__, weight, rest)) for weight, _ in options for rest in reach[-1]})
        reach.reverse()
        wanted = tuple(0 if count is None else count for count in need)

        def choose(place, rest):
            self._count()
            if place == len(weights):
                yield ()
                return
            for weight, option in weights[place]:
                after = tuple(map(int.__sub__, rest, weight))
                if after in reach[place + 1]:
                    for more in choose(place + 1, after):
                        yield option, *more
        for total in sorted(one for one in reach[0] if one[:3] == wanted):
            yield from choose(0, total)

    def _may_change(self, moment, peer, used):
        return self.masks[peer] & moment.loose & ~used or moment.time >= moment.expires[peer]

    def _options(self, moment, peer, value, used):
        """What a peer may be after some of its unanswered announces, or when it has been silent for too long."""
        expires = moment.time >= moment.expires[peer]
        left = self.masks[peer] & moment.loose & ~used
        if not left and not expires:
            return [Option(value, 0, 0, frozenset())]
        key = (peer, value, left, expires)
        if key not in self.options_known:
            self.options_known[key] = self._find_options(peer, value, left, expires)
        return self.options_known[key]

    def _find_options(self, peer, value, left, expires):
        options, kept = collections.deque([Option(value, 0, 0, frozenset())]), []
        while options:
            option = options.popleft()
            if any(other.value == option.value and other.count == option.count and not other.used & ~option.used
                   for other in kept):
                continue
            kept.append(option)
            ancestors = option.ancestors | {option}
            tried = set()
            for bit, effect in self.loose[peer]:
                # Of announces that are alike, the first is as good as any.
                if bit & option.used or not bit & left or effect in tried:
                    continue
                tried.add(effect)
                after, count = changed(option.value, effect)
                options.append(Option(after, option.count + count, option.used | bit, ancestors))
            if expires and option.value != 0:
                options.append(Option(0, option.count, option.used, ancestors))
        return kept


def _with(values, peer, value):
    return values if values[peer] == value else (*values[:peer], value, *values[peer + 1:])


def _useful(options, allowed, counts_matter):
    """Those options that may be; one that shows no more than an option on its way may as well go on later."""
    shown = {}
    for option in options:
        if allowed & standing(option.value):
            shown[option] = (standing(option.value), option.count if counts_matter else 0)
    return [option for option, show in shown.items()
            if not any(shown.get(ancestor) == show for ancestor in option.ancestors)]


def _weight(option, need):
    """What an option adds to what is needed: (seeders, leechers, downloads, how many announces it takes)."""
    stands = standing(option.value)
    return (int(stands == SEEDER and need[0] is not None), int(stands == LEECHER and need[1] is not None),
            option.count if need[2] is not None else 0, len(option.ancestors))


def _add(configurations, key, used):
    """Keeps a configuration, unless one is there that explains as much; returns whether it was kept."""
    known = configurations.setdefault(key, [])
    for other in known:
        if not other & ~used:
            return False
    known[:] = [other for other in known if used & ~other]
    known.append(used)
    return True


def shown(steps):
    """The steps without downloads and peer ids: what is left is who is there, as what, and far fewer swarms are
    possible.

    What contradicts itself then does so all the more with them.
    """
    shorter = []
    for step in steps:
        told = tuple(dataclasses.replace(told, completed=None) for told in step.told)
        effect = step.effect and ("stopped" if step.effect[0] == "stopped" else "none", "", step.effect[2])
        shorter.append(dataclasses.replace(step, told=told, effect=effect))
    return shorter


def decide(steps, peer_count, budget):
    """One search after another, until one comes to an end."""
    work = 0
    for pull in PULLS:
        verdict = Search(steps, peer_count, budget // len(PULLS), pull).run()
        work += verdict.work
        if verdict.kind != "undecided":
            break
    return dataclasses.replace(verdict, work=work)


def check_steps(steps, peer_count, budget=WORK):
    """The verdict on steps: first on who is there, then on downloads as well.

    Where only downloads are undecided the kind is "linearizable", but for them: `is_whole` says so.
    """
    first = decide(shown(steps), peer_count, budget)
    if first.kind != "linearizable":
        return first
    second = decide(steps, peer_count, budget)
    if second.kind == "undecided":
        return dataclasses.replace(first, work=first.work + second.work, is_whole=False)
    return second


def check(history, budget=WORK):
    """The verdict on a history."""
    peers = peers_of(history)
    return check_steps(steps_of(history, peers), len(peers), budget)
