"""What is wrong with a reply by itself, whatever the swarm is: promised in every mode, and seen without any search."""

from history import is_ipv6


def faults(history):
    """A sentence for each fault of form."""
    found = []
    families = {is_ipv6(operation.peer) for operation in history.operations if operation.kind == "announce"}
    for operation in history.operations:
        who = operation.peer or operation.client
        for problem in _more_replies_than_copies(history, operation):
            found.append(f"{operation.called:.6f} s: {who} {problem}")
        if operation.kind == "announce":
            for time, answer in operation.answers:
                found += [f"{time:.6f} s: {who} {problem}"
                          for problem in _faults(history, operation, answer, len(families) == 1)]
    return found


def _more_replies_than_copies(history, operation):
    """Each tracker answers each copy of a request once; only a group may say again what a dead master has said."""
    if history.entry == "group":
        return
    asked = [tracker for _, tracker in operation.sent]
    answered = [answer["from"] for _, answer in operation.replies if "from" in answer]
    for tracker in sorted(set(answered)):
        if answered.count(tracker) > asked.count(tracker):
            yield (f"is answered {answered.count(tracker)} times by tracker {tracker}, "
                   f"which was asked {asked.count(tracker)} times")


def _faults(history, operation, answer, is_one_family):
    peers, limit = answer["peers"], history.limit(operation)
    if operation.event == "stopped" and peers:
        yield f"leaves, and is told of {len(peers)} peers"
        return
    if len(peers) > limit:
        yield f"is told of {len(peers)} peers, and wants {limit}"
    if len(set(peers)) < len(peers):
        yield "is told of a peer twice"
    if operation.peer in peers:
        yield "is told of itself"
    if foreign := [peer for peer in peers if is_ipv6(peer) != is_ipv6(operation.peer)]:
        yield f"is told of {foreign[0]}, which is of another family"
    if operation.event == "stopped":
        return
    seeders, leechers = answer["seeders"], answer["leechers"]
    if (seeders if operation.is_seeder else leechers) < 1:
        yield "is told counts in which it is not"
        return
    others = leechers if operation.is_seeder else seeders + leechers - 1
    expected = min(limit, others)
    if len(peers) != expected and (is_one_family or len(peers) > expected):
        yield f"is told of {len(peers)} peers, and of counts by which it should be {expected}"
