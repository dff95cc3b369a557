"""A history as steps: parts of operations that happen at one moment each, and what their answers say of the swarm
then.
"""

import dataclasses
import functools

import history as records
from history import NEVER

LOST_DISK = "tracker has lost its disk, try another tracker"
NOT_STORED = "tracker could not store the update, try again later"
UNSURE = {"quorum": [LOST_DISK], "survivor": [LOST_DISK, NOT_STORED]}
"""The errors after which an update may be there: its tracker cannot know, or another has stored it and goes on
alone.
"""
ABSENT, LEECHER, SEEDER = 1, 2, 4
ANY = ABSENT | LEECHER | SEEDER
COUNTS = ("seeders", "leechers", "completed")


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

    @functools.cached_property
    def counts(self):
        """(seeders, leechers, completed downloads) that were told, None where nothing was."""
        return tuple(next((count for told in self.told if (count := getattr(told, name)) is not None), None)
                     for name in COUNTS)

    @functools.cached_property
    def is_torn(self):
        """Whether two answers to it say different things."""
        return any(getattr(told, name) not in (None, count) for told in self.told
                   for name, count in zip(COUNTS, self.counts))


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
