"""What clients asked and were told, with times of one clock: the record that the checkers of histories read.

A file has a line of JSON for the history and one for each operation, so that people can read it, cut it and mend it:

    {"swarm": "6f1c…", "mode": "quorum", "profile": "paxos", "entry": "any",
     "marks": [[3.1, 5.2, "tracker 3 is held"]]}
    {"kind": "announce", "client": "peer 2", "peer": "10.233.0.5:2001", "id": "a1", "event": "started", "left": 9,
     "want": 200, "sent": [[1.250001, 2]],
     "replies": [[1.253, {"interval": 1800, "seeders": 0, "leechers": 1, "peers": [], "from": 2}]]}

Times are in seconds. `sent` has each copy of a request (retransmissions are copies: one transaction, the same bytes)
with the tracker that it was sent to, 0 for a group; `replies` has each reply to any of them. A reply that is an error
is {"error": "…"}. An operation without a reply may have taken effect at any time after it was sent, or never.
"""

import dataclasses
import json

EVENTS = ("none", "completed", "started", "stopped")
NEVER = float("inf")


class Malformed(Exception):
    """A file that is no history; the text says which line, and why."""


@dataclasses.dataclass
class Operation:
    """An announce, or a scrape, and all that came of it."""
    kind: str
    client: str
    sent: list
    replies: list
    peer: str | None = None
    id: str = ""
    event: str = "none"
    left: int = 0
    want: int = -1

    @property
    def answers(self):
        """(time, answer) of replies that are no errors."""
        return [(time, answer) for time, answer in self.replies if "error" not in answer]

    @property
    def errors(self):
        """(time, text) of replies that are errors."""
        return [(time, answer["error"]) for time, answer in self.replies if "error" in answer]

    @property
    def called(self):
        return self.sent[0][0]

    @property
    def returned(self):
        """When it was first answered; NEVER where it was not."""
        return min((time for time, _ in self.answers), default=NEVER)

    @property
    def is_seeder(self):
        return self.left == 0 and self.event != "stopped"

    def line(self):
        fields = dataclasses.asdict(self)
        if self.kind == "scrape":
            for name in ("peer", "id", "event", "left", "want"):
                del fields[name]
        return fields


@dataclasses.dataclass
class History:
    """The operations on one swarm. `marks` are (from, until, what) of all that was done to the trackers meanwhile."""
    swarm: str
    mode: str = "quorum"
    profile: str = "paxos"
    entry: str = "any"
    marks: list = dataclasses.field(default_factory=list)
    operations: list = dataclasses.field(default_factory=list)
    num_want: int = 50
    max_num_want: int = 200
    calm: float = 0.0  # Until when nothing had been done to trackers, and one master had served.
    healed: float | None = None  # From when on all trackers were one again.
    ended: float = NEVER  # When the clients had ended, and only those asked who look what is there.
    end: float = NEVER  # When the last had asked.

    def write(self, path):
        header = dataclasses.asdict(self)
        del header["operations"]
        with open(path, "w", encoding="utf-8") as file:
            print(json.dumps({name: value for name, value in header.items() if value != NEVER}), file=file)
            for operation in self.operations:
                print(json.dumps(operation.line()), file=file)

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8") as file:
            lines = [(number, line) for number, line in enumerate(file, 1) if line.strip()]
        if not lines:
            raise Malformed(f"{path} is empty: a history has a line for itself and one for each operation")
        history = _parse(History, *lines[0], path)
        history.operations = [_operation(_parse(Operation, number, line, path), number, path)
                              for number, line in lines[1:]]
        return history

    def limit(self, operation):
        """How many peers an announce is told of at most."""
        wanted = self.num_want if operation.want < 0 else operation.want
        return min(wanted, self.max_num_want, 76 if is_ipv6(operation.peer) else self.max_num_want)


def is_ipv6(peer):
    return peer.startswith("[")


def _parse(kind, number, line, path):
    try:
        return kind(**json.loads(line))
    except (ValueError, TypeError) as problem:
        raise Malformed(f"{path}, line {number}: {problem}") from problem


def _operation(operation, number, path):
    """Checks what the checkers count on."""
    def refuse(why):
        raise Malformed(f"{path}, line {number}: {why}")
    if operation.kind not in ("announce", "scrape"):
        refuse(f'an operation is an "announce" or a "scrape", not {json.dumps(operation.kind)}')
    if not operation.sent or sorted(operation.sent) != operation.sent:
        refuse("sent needs one time at least, in rising order, each with its tracker")
    if any(time < operation.called for time, _ in operation.replies):
        refuse("a reply comes before its request")
    if operation.kind == "announce":
        if not operation.peer:
            refuse("an announce needs its peer")
        if operation.event not in EVENTS:
            refuse(f"an event is one of {', '.join(EVENTS)}")
    for _, answer in operation.answers:
        wanted = {"seeders", "leechers", "completed" if operation.kind == "scrape" else "peers"}
        if missing := wanted - answer.keys():
            refuse(f"an answer lacks {', '.join(sorted(missing))}")
    return operation
