"""What survivor mode (`classic`, `rotating`, `lowest`) promises, as far as clients see it: docs/protocol.md and
docs/rules.md say it of trackers. Each promise is checked against the history of one swarm:

1. A reply is right in its form (`forms.py`), on either side of a partition.
2. Nobody is made up: who is listed has announced before; no more are counted than have announced; no more downloads
   than were told to be complete.
3. Until the first fault there is one master and one history, which is linearizable.
4. While trackers are well, none of them keeps a client waiting: what a tracker is asked that is neither dead nor held
   nor cut off nor without room is answered, or refused, before its client would ask again (15 s). One that does not
   vote may hold the others up, and does so for a bounded time. When two sides meet, one takes over the state of the
   other, and forgets what it has heard: it may have been decided in entries that it never sees.
5. After the heal there is one repository: all trackers tell the same counts.
6. After the heal the latest word on each peer counts: no live peer is lost, and who has stopped stays away.
7. After the heal each completed download that was answered is counted. Once, but for what was under way when a side
   was lost: both sides may have been told of that.

What nobody promises, and so nobody asks for: equal counts while there are two sides; that an update is not there of
which a client was told that it is not stored; when an unanswered request takes effect. A word is "the latest" by the
cluster's time, in whole seconds, which runs ahead by one with each stop that is followed by a start.

One known fault is allowed for (docs/simulation.md, "What is open"): what a slave has forwarded to a master that is cut
off or held just then may be decided by that one once more, when it is back, and so come after later words of the same
peer. `check_history.py --strict` calls that broken, too.
"""

import copy

import linearizability
from history import NEVER, is_ipv6

PATIENCE = 15
"""Seconds after which a client asks again (BEP 15)."""
STALL = 1
"""Seconds more, for what the machine itself holds up."""
UNDER_WAY = 0.5
"""Seconds: what is answered sooner was under way in no fault."""
MISSED = 4
"""Seconds after which a master that is silent has been missed, and nothing is forwarded to it any more: twice what that
takes where nothing else is at work.
"""


def check(history, work=linearizability.WORK, is_strict=False):
    """(what is wrong, in sentences; whether something is undecided). `is_strict` does not allow for late copies."""
    found = nobody_is_made_up(history) + nobody_waits(history)
    beginning = until(history, history.calm)
    verdict = linearizability.check(beginning, work)
    if verdict.kind == "contradiction":
        found.append("Before the first fault, with one master, what was told is not linearizable.")
    if history.healed is not None:
        found += last_words_count(history, is_strict) + downloads_count(history) + trackers_agree(history)
    return found, verdict.kind == "undecided"


def until(history, end):
    """What was known at a time: later replies are not there yet."""
    short = copy.copy(history)
    short.operations = []
    for operation in history.operations:
        if operation.called < end:
            known = copy.copy(operation)
            known.sent = [one for one in operation.sent if one[0] < end]
            known.replies = [one for one in operation.replies if one[0] < end]
            short.operations.append(known)
    return short


# 2

def nobody_is_made_up(history):
    found, since = [], {}
    announces = [operation for operation in history.operations if operation.kind == "announce"]
    for operation in announces:
        if operation.event != "stopped":
            since.setdefault(operation.peer, operation.called)
    for operation in history.operations:
        for time, answer in operation.answers:
            who = operation.peer or operation.client
            for peer in answer.get("peers", ()):
                if since.get(peer, NEVER) > time:
                    found.append(f"{time:.6f} s: {who} is told of {peer}, which nobody has announced by then.")
            came = sum(at < time for at in since.values())
            if answer["seeders"] + answer["leechers"] > came:
                found.append(f"{time:.6f} s: {who} is told of {answer['seeders']} seeders and {answer['leechers']} "
                             f"leechers, and {came} peers have announced by then.")
            most = sum(len(other.sent) for other in announces if other.event == "completed" and other.called < time)
            # Each side of a partition may have been told of a download.
            if answer.get("completed", 0) > 2 * most:
                found.append(f"{time:.6f} s: {who} is told of {answer['completed']} completed downloads, and "
                             f"{most} requests have told of one by then.")
    return found


# 4

def nobody_waits(history):
    """A tracker that is well answers. (What is lost in the machine is asked again by the same client, and not
    judged.)
    """
    found = []
    waited = PATIENCE + STALL
    for operation in history.operations:
        trackers = {tracker for _, tracker in operation.sent}
        at, end = operation.sent[-1][0], operation.sent[-1][0] + waited
        if operation.replies and operation.replies[0][0] < end or len(trackers) != 1 or history.end < end:
            continue
        name = f"tracker {next(iter(trackers))}"
        touched = [what for since, to, what in history.marks if since < end and (to or NEVER) > at - PATIENCE
                   and (what.startswith((f"{name} ", "all ", "no ")))]
        takes_over = any(("cut off" in what or "held" in what) and to and to - STALL < at < to + MISSED
                         for _, to, what in history.marks)
        if not touched and not takes_over:
            found.append(f"{at:.6f} s: {operation.peer or operation.client} asks {name}, with which nothing is wrong, "
                         f"and has no answer for {waited} s.")
    return found


# 5

def last_looks(history):
    """What the trackers said last, when nobody announced any more."""
    return [operation for operation in history.operations
            if operation.client == "the last scraper" and operation.answers]


def trackers_agree(history):
    told = {}
    for operation in last_looks(history):
        answer = operation.answers[0][1]
        told[operation.sent[0][1]] = (answer["seeders"], answer["leechers"], answer["completed"])
    if len(set(told.values())) < 2:
        return []
    said = "; ".join(f"tracker {tracker} tells {seeders} seeders, {leechers} leechers, {completed} completed"
                     for tracker, (seeders, leechers, completed) in sorted(told.items()))
    return [f"After the heal there is more than one repository: {said}."]


# 6

def words_of(history, before):
    """All announces of each peer that were sent before a time, in the order of their calls."""
    words = {}
    for operation in history.operations:
        if operation.kind == "announce" and operation.called < before:
            words.setdefault(operation.peer, []).append(operation)
    return words


def may_come_again(word, history):
    """Whether a word may have been forwarded to a master that had just been cut off or held, and was not missed yet."""
    return any(("cut off" in what or "held" in what) and since - STALL < word.called < since + MISSED
               for since, _, what in history.marks)


def may_be(words, history, is_strict):
    """What a peer may be: of "absent", "leecher" and "seeder"."""
    possible = set()
    for word in words:
        if not is_strict and may_come_again(word, history) or not any(
                is_later(other, word, words) for other in words if other is not word):
            possible.add(standing(word))
    if all(not word.answers for word in words):
        possible.add("absent")
    return possible


def is_later(other, word, words):
    """Whether a word is the later of two for sure: it was asked when the other one had been answered."""
    if not other.answers:
        return False
    copies = len(word.sent) - len(word.errors)
    if copies > len(word.answers):
        return False  # A copy may come at any time.
    last = max((time for time, _ in word.replies), default=word.called)
    # The cluster's time is ahead by the stops that were followed by a start in the same second.
    ahead = sum(one.event == "stopped" and last - 5 < one.called <= last for one in words)
    return other.called >= last + 1 + ahead


def standing(word):
    return "absent" if word.event == "stopped" else "seeder" if word.left == 0 else "leecher"


def last_words_count(history, is_strict):
    """Compares what the last watcher was told with what the peers may be."""
    watchers = [operation for operation in history.operations
                if operation.kind == "announce" and operation.called > history.ended]
    if not watchers:
        return []
    watcher, found = watchers[0].peer, []
    words = words_of(history, history.ended)
    for operation in watchers:
        if operation.event == "stopped" or not operation.answers:
            continue
        answer = operation.answers[0][1]
        told = set(answer["peers"])
        for peer, own in words.items():
            possible = may_be(own, history, is_strict)
            if is_ipv6(peer) != is_ipv6(watcher):
                continue
            shown = {"leecher"} if operation.left == 0 else {"leecher", "seeder"}
            if peer in told and not possible & shown:
                found.append(tell(peer, own, "is told to be there" if shown != {"leecher"} else
                                  "is told to be a leecher", possible))
            if peer not in told and possible <= shown:
                found.append(tell(peer, own, "is not told", possible))
    return found


def tell(peer, words, what, possible):
    """A peer's last words, for people."""
    lines = [f"After the heal {peer} {what}, and by its last words it is {' or '.join(sorted(possible))}:"]
    for word in words[-6:]:
        replies = ", ".join(f"{'refused' if 'error' in answer else 'answered'} at {time:.6f} s"
                            for time, answer in word.replies) or "no answer"
        sent = ", ".join(f"{time:.6f} s to tracker {tracker}" for time, tracker in word.sent)
        lines.append(f"    {word.event}, {standing(word)}: {sent}; {replies}")
    return "\n".join(lines)


# 7

def downloads_count(history):
    """What the last look says of completed downloads, against what clients have told."""
    looks = last_looks(history)
    if not looks:
        return []
    told = [operation for operation in history.operations if operation.kind == "announce"
            and operation.event == "completed"]
    least = sum(is_sure(history, operation) for operation in told)
    most = 0
    for operation in told:
        returned = operation.returned
        was_calm = len(operation.sent) == 1 and returned - operation.called < UNDER_WAY and not any(
            since - UNDER_WAY < returned and (to or NEVER) + UNDER_WAY > operation.called
            for since, to, _ in history.marks)
        most += 1 if was_calm else 2 * len(operation.sent)
    count = looks[-1].answers[0][1]["completed"]
    if least <= count <= most:
        return []
    return [f"After the heal {count} downloads are counted, and by what clients were answered it is {least} to {most}."]


def is_sure(history, operation):
    """Whether a download must have been counted: the same tracker has answered all that the peer has told in this
    life.
    """
    if not operation.answers or len(operation.sent) > 1:
        return False
    tracker = operation.sent[0][1]
    life = [other for other in history.operations if other.peer == operation.peer and other.called <= operation.called]
    start = max((place for place, other in enumerate(life) if other.event == "started"), default=None)
    if start is None:
        return False
    own = life[start:]
    if any(len(other.sent) > 1 or not other.answers or other.sent[0][1] != tracker for other in own):
        return False
    # Whatever was open before may come in between.
    if any(len(other.sent) > len(other.answers) or other.returned > own[0].called for other in life[:start]):
        return False
    known = [other for other in life[:start] if other.id == operation.id]
    return own[0].left > 0 and not known and sum(other.event == "completed" for other in own) == 1
