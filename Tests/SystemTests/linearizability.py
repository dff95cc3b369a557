"""Whether a history of one swarm is linearizable: whether each announce and scrape may have happened at one moment between
its request and its reply, so that what all were told is what a single tracker would have told them.

The algorithm is Wing and Gong's search (*Testing and verifying concurrent objects*, 1993) in the form of Lowe (*Testing for
linearizability*, 2017): "just in time", with states that were seen before told apart by a set. The history is walked in
the order of time by configurations that explain it so far: (the swarm, which of the open operations have happened, which
unanswered ones have). Whenever a reply comes, a configuration is continued by open operations until the one with the reply
has happened; what has come furthest goes on first. Where nothing is left, the furthest reply is the one that nothing explains.

Operations without an answer may happen at any later time, or never, which would double the configurations with each. Two
things that are true of swarms keep them few. An unanswered announce changes its own peer only, and what different peers do
commutes: so it happens only where a reply demands it, or before another announce of the same peer. And of two
configurations with equal swarms, the one that has used up fewer unanswered announces explains all that the other does.

A swarm is what `Sources/Simulator/Checks/SwarmModel.swift` says, made small: who is there, as what, under which peer id,
whether its download was counted, and how many were. `Budget` bounds the work; beyond, the verdict is "undecided".
"""

import collections
import dataclasses
import functools

import history as records
from history import NEVER

LOST_DISK = "tracker has lost its disk, try another tracker"
NOT_STORED = "tracker could not store the update, try again later"
UNSURE = {"quorum": [LOST_DISK], "survivor": [LOST_DISK, NOT_STORED]}
"""The errors after which an update may be there: its tracker cannot know, or another has stored it and goes on alone."""
ABSENT, LEECHER, SEEDER = 1, 2, 4
ANY = ABSENT | LEECHER | SEEDER
WORK = 400_000
"""Attempts to let an operation happen, per history; a few seconds."""


@dataclasses.dataclass(frozen=True)
class Told:
    """What an answer says of the swarm right after its operation; what is None or empty, it does not say.

    `listed` are peers that may be told to the asker, `unlisted` those that may not: a leecher is told of all others, a
    seeder of leechers.
    """
    seeders: int | None = None
    leechers: int | None = None
    completed: int | None = None
    listed: frozenset = frozenset()
    unlisted: frozenset = frozenset()

    def says_something(self):
        return self != Told()


@dataclasses.dataclass(frozen=True)
class Step:
    """A part of an operation that happens at one moment, or, where `ret` is NEVER, perhaps not at all."""
    operation: int
    call: float
    ret: float
    peer: int | None = None
    effect: tuple | None = None  # (event, peer id, whether nothing is left to load)
    told: tuple = ()
    interval: float = NEVER

    @functools.cached_property
    def allowed(self):
        """What peers may be for the answers to be right: ((peer, standings), …)."""
        is_seeder = self.effect is not None and self.effect[2]
        allowed = {}
        for told in self.told:
            for peer in told.listed:
                allowed[peer] = allowed.get(peer, ANY) & (LEECHER if is_seeder else LEECHER | SEEDER)
            for peer in told.unlisted:
                allowed[peer] = allowed.get(peer, ANY) & (ABSENT | SEEDER if is_seeder else ABSENT)
        return tuple(sorted(allowed.items()))

    def counts(self, name):
        return {getattr(told, name) for told in self.told} - {None}


@dataclasses.dataclass(frozen=True)
class Verdict:
    """`kind` is "linearizable", "contradiction" or "undecided"; `at` is the step whose answer nothing explains."""
    kind: str
    work: int
    at: int | None = None


class Undecided(Exception):
    """The budget is used up."""


# From a history to steps

def peers_of(history):
    """All peers that are named: those that announce, and those that somebody was told of."""
    names = {operation.peer for operation in history.operations if operation.kind == "announce"}
    for operation in history.operations:
        for _, answer in operation.answers:
            names.update(answer.get("peers", ()))
    return sorted(names)


def steps_of(history, peers):
    """The steps of a history, in the order of their calls."""
    numbers = {peer: number for number, peer in enumerate(peers)}
    steps = []
    for number, operation in enumerate(history.operations):
        if operation.kind == "scrape":
            steps += [Step(number, operation.called, time, told=(_scraped(answer),))
                      for time, answer in operation.answers]
        else:
            steps += _announces(history, number, operation, numbers)
    return sorted(steps, key=lambda step: (step.call, step.ret))


def _scraped(answer):
    return Told(answer["seeders"], answer["leechers"], answer["completed"])


def _announces(history, number, operation, numbers):
    """An update may have been made once for each copy of its request; in a group, copies are one."""
    own = numbers[operation.peer]
    effect = (operation.event, operation.id, operation.left == 0 and operation.event != "stopped")
    told = [(time, _announced(history, operation, answer, numbers), answer) for time, answer in operation.answers]
    sure = [text for _, text in operation.errors if text not in UNSURE[history.mode]]

    def step(call, ret, *answers):
        interval = min((answer.get("interval", NEVER) for _, _, answer in answers), default=NEVER)
        return Step(number, call, ret, own, effect, tuple(said for _, said, _ in answers), interval)
    if history.entry == "group":
        if told:
            return [step(operation.called, told[0][0], *told)]
        return [] if sure and len(operation.sent) == 1 else [step(operation.called, NEVER)]
    answered = []
    for one in told:
        copies = [time for time, tracker in operation.sent if tracker == one[2].get("from", tracker)]
        answered.append(step(min(copies, default=operation.called), one[0], one))
    open_count = len(operation.sent) - len(told) - len(sure)
    return answered + [step(time, NEVER) for time, _ in operation.sent[:max(open_count, 0)]]


def _announced(history, operation, answer, numbers):
    listed = frozenset(numbers[peer] for peer in answer["peers"] if peer != operation.peer)
    unlisted = frozenset()
    # Fewer than he may be told of: these are all that there are.
    if len(answer["peers"]) < history.limit(operation) and operation.event != "stopped":
        family = records.is_ipv6(operation.peer)
        unlisted = frozenset(number for peer, number in numbers.items() if number not in listed
                             and peer != operation.peer and records.is_ipv6(peer) == family)
    return Told(answer["seeders"], answer["leechers"], None, listed, unlisted)


# The swarm

@functools.lru_cache(maxsize=None)
def changed(value, effect):
    """What an announce makes of its peer, and how many downloads it counts.

    A peer is 0 where it is absent, else (peer id, whether it seeds, whether its download was counted).
    """
    event, peer_id, is_complete = effect
    if event == "stopped":
        return 0, 0
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
    """What unanswered announces of a peer may have made of it: `used` are their bits, `ancestors` the options on the way."""
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

    def __init__(self, steps, peer_count, budget=WORK):
        self.steps, self.budget, self.work = steps, budget, 0
        self.loose = [[] for _ in range(peer_count)]  # Of each peer: (bit, effect) of what nobody has answered.
        self.masks = [0] * peer_count
        bits = {}
        for number, step in enumerate(steps):
            if step.ret == NEVER:
                bits[number] = 1 << len(bits)
                self.loose[step.peer].append((bits[number], step.effect))
                self.masks[step.peer] |= bits[number]
        self.moments = moments_of(steps, peer_count, bits)
        self.options_known = {}
        self.start = (0, 0, (0,) * peer_count, 0, 0)

    def run(self):
        """Walks on from the configuration that has come furthest, and back where nothing is left."""
        waiting, seen, furthest = [self.start], {}, 0
        try:
            while waiting:
                place, completed, values, done, used = waiting.pop()
                if place == len(self.moments):
                    return Verdict("linearizable", self.work)
                furthest = max(furthest, place)
                following = self._continue(self.moments[place], place, completed, values, done, used)
                for one in reversed(following):
                    if _add(seen, one[:4], one[4]):
                        waiting.append(one)
        except Undecided:
            return Verdict("undecided", self.work)
        return Verdict("contradiction", self.work, self.moments[furthest].step)

    def _continue(self, moment, place, completed, values, done, used):
        """What may come next: the step that is answered has happened, or another one before it."""
        if done >> moment.step & 1:
            return [(place + 1, completed, values, done ^ 1 << moment.step, used)]
        following = []
        for number in moment.open_steps:
            if done >> number & 1:
                continue
            for one in self._happen(moment, self.steps[number], completed, values, used):
                if number == moment.step:
                    following.append((place + 1, one[0], one[1], done, one[2]))
                else:
                    following.append((place, one[0], one[1], done | 1 << number, one[2]))
        return following

    def _happen(self, moment, step, completed, values, used):
        """All (completed, values, used) after a step that is right, with the unanswered announces that it needs."""
        self.work += 1
        if self.work > self.budget:
            raise Undecided
        own = step.peer
        if own is None:
            return [(completed + count, self._with(values, changes), used | more)
                    for changes, count, more in self._others(moment, step, completed, values, used)]
        variants = []
        for option in self._options(moment, own, values[own], used):
            value, count = changed(option.value, step.effect)
            variants.append((completed + option.count + count, value, used | option.used))
        # Whatever it was before, it stands there now as it says.
        values = self._with(values, [(own, variants[0][1])])
        others = self._others(moment, step, completed, values, used)
        return [(total + count, self._with(values, [(own, value), *changes]), all_used | more)
                for total, value, all_used in variants for changes, count, more in others]

    @staticmethod
    def _with(values, changes):
        if not changes:
            return values
        values = list(values)
        for peer, value in changes:
            values[peer] = value
        return tuple(values)

    def _others(self, moment, step, completed, values, used):
        """The least that other peers' unanswered announces must have done: (changes, downloads counted, bits)."""
        allowed = dict(step.allowed)
        needs = [step.counts(name) for name in ("seeders", "leechers", "completed")]
        if any(len(need) > 1 for need in needs):
            return []
        seeders, leechers, total = [next(iter(need), None) for need in needs]
        free, have = [], [0, 0]
        is_right = True
        for peer, value in enumerate(values):
            stands = standing(value)
            fits = peer == step.peer or allowed.get(peer, ANY) & stands
            if peer != step.peer and self._may_change(moment, peer, used):
                free.append(peer)
                is_right = is_right and fits
            elif not fits:
                return []
            have[0] += stands == SEEDER
            have[1] += stands == LEECHER
        if is_right and seeders in (None, have[0]) and leechers in (None, have[1]) and total in (None, completed):
            return [((), 0, 0)]
        if not free:
            return []
        for peer in free:
            stands = standing(values[peer])
            have[0] -= stands == SEEDER
            have[1] -= stands == LEECHER
        wanted = [None if need is None else need - there
                  for need, there in zip((seeders, leechers, total), (*have, completed))]
        choices = [[option for option in self._options(moment, peer, values[peer], used)
                    if allowed.get(peer, ANY) & standing(option.value)] for peer in free]
        return self._least(free, values, self._choose(choices, wanted))

    def _choose(self, choices, wanted):
        """All choices of an option for each peer that come to the wanted numbers of seeders, leechers and downloads."""
        found = []

        def choose(place, chosen, seeders, leechers, total):
            self.work += 1
            if self.work > self.budget:
                raise Undecided
            left = len(choices) - place
            for need in (seeders, leechers):
                if need is not None and not 0 <= need <= left:
                    return
            if total is not None and total < 0:
                return
            if left == 0:
                if total in (None, 0):
                    found.append(tuple(chosen))
                return
            for option in choices[place]:
                stands = standing(option.value)
                choose(place + 1, [*chosen, option],
                       None if seeders is None else seeders - (stands == SEEDER),
                       None if leechers is None else leechers - (stands == LEECHER),
                       None if total is None else total - option.count)
        choose(0, [], *wanted)
        return found

    def _least(self, free, values, found):
        """Those choices of which no part would do: what is left out can happen later as well."""
        found.sort(key=lambda chosen: sum(len(option.ancestors) for option in chosen))
        least = []
        for chosen in found:
            self.work += 1
            if any(all(part == whole or part in whole.ancestors for part, whole in zip(other, chosen))
                   for other in least):
                continue
            least.append(chosen)
        return [([(peer, option.value) for peer, option in zip(free, chosen) if option.value != values[peer]],
                 sum(option.count for option in chosen),
                 functools.reduce(int.__or__, (option.used for option in chosen))) for chosen in least]

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


def _add(configurations, key, used):
    """Keeps a configuration, unless one is there that explains as much; returns whether it was kept."""
    known = configurations.setdefault(key, [])
    for other in known:
        if not other & ~used:
            return False
    known[:] = [other for other in known if used & ~other]
    known.append(used)
    return True


def check(history, budget=WORK):
    """The verdict on a history."""
    peers = peers_of(history)
    return Search(steps_of(history, peers), len(peers), budget).run()
