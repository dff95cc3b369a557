"""Clients that ask trackers over UDP and write down what they asked and were told, with times of one clock.

All of them live in one thread, so a request is noted before it is sent and a reply after it has come: the times of a
history lie around those at which things happened, never within. A client has one peer in one swarm and asks one thing
after another. Where no answer comes it loses patience, and goes on: what it had asked stays open, and an answer that
comes later is noted all the same. Some ask again meanwhile with the same bytes, of the same tracker or the next.
"""

import ipaddress
import random
import selectors
import socket
import struct
import time

import bep15
from history import History, Operation

CONNECTION_LIFE = 50
"""Seconds: BEP 15 lets a client use a connection id for a minute."""
CONNECT_PATIENCE = 0.4
FIRST_PORT = 2_001
EVENTS = {"none": bep15.Event.NONE, "completed": bep15.Event.COMPLETED, "started": bep15.Event.STARTED,
          "stopped": bep15.Event.STOPPED}


def spelled(address, port):
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


class Connection:
    """A connection id of one address: good at all trackers, for all that ask from there."""

    def __init__(self):
        self.id, self.good_until, self.asked_at, self.transaction = None, 0, 0, None


class Asker:
    """Somebody with a socket, who asks one thing after another: `next` says what, `pause` how long it rests before."""

    def __init__(self, crowd, name, address, draw):
        self.crowd, self.name, self.random = crowd, name, draw
        self.socket = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.address = address
        self.socket.bind((address, 0))
        self.door = draw.randrange(len(crowd.doors(address)))
        self.patience = crowd.patience(draw)
        self.repeats = draw.random() < 0.25
        self.wakes_at = time.monotonic() + draw.random() * 0.3
        self.operation, self.request, self.rests, self.failures = None, None, False, 0

    # What it asks

    def next(self):
        """(the operations of histories, the request behind its header, action): a scrape is one in several
        histories.
        """
        raise NotImplementedError

    def pause(self):
        return self.random.expovariate(1 / self.crowd.think)

    # Time

    def work(self, now):
        """Does what is due; returns when something will be."""
        if now < self.wakes_at:
            return self.wakes_at
        if self.operation and now >= self.gives_up_at:
            self.operation = None
            self.door += 1
            # Where nobody answers, it asks less often: each try is one more that may be carried out at any time.
            self.failures += 1
            self.wakes_at = now + self.pause() * 2 ** min(self.failures, 4)
        elif self.operation:
            self._send(self.operation)
            self.wakes_at = self.gives_up_at
        elif self.rests:
            self.wakes_at = float("inf")
        else:
            self._ask(now)
        return self.wakes_at

    def _ask(self, now):
        connection = self.crowd.connection(self, now)
        if connection is None:
            self.wakes_at = now + 0.02
            return
        self.operation, content, action = self.next()
        self.transaction = self.crowd.transaction(self)
        self.request = struct.pack("!QII", connection, action, self.transaction) + content
        self.gives_up_at = now + self.patience
        self._send(self.operation)
        self.wakes_at = self.gives_up_at
        if self.repeats and self.random.random() < 0.7:
            # Once more with the same bytes, unless an answer comes before.
            self.door += self.random.random() < 0.5
            self.wakes_at = now + min(self.patience / 2, 0.6)

    def _send(self, operations):
        number, door = self.crowd.door(self.address, self.door)
        at = self.crowd.now()
        for operation in operations:
            operation.sent.append([at, number])
        self.crowd.sent += 1
        try:
            self.socket.sendto(self.request, door)
        except OSError:
            pass  # A host that is not there: as if it had been lost.

    def answered(self, transaction):
        """A reply has come to something that was asked."""
        self.failures = 0
        if self.operation and transaction == self.transaction:
            self.operation = None
            self.wakes_at = time.monotonic() + self.pause()


class PeerAsker(Asker):
    """A peer of a swarm, from `started` to `stopped`, again and again."""

    def __init__(self, crowd, number, swarm, address, draw):
        super().__init__(crowd, f"peer {number}", address, draw)
        self.history, self.info_hash = crowd.histories[swarm], crowd.info_hashes[swarm]
        self.port = FIRST_PORT + number
        self.peer = spelled(address, self.port)
        self.life, self.left = 0, None

    def next(self):
        event = self._next_event()
        want = self.random.choice([200, 200, 200, 200, 200, 200, 3, 0])
        return self.asks(event, want)

    def _next_event(self):
        draw = self.random.random()
        if self.left is None:
            # A client draws a peer id when it starts; one that is only told to stop and go on keeps it.
            self.life += self.random.random() < 0.6
            self.left = 0 if draw < 0.15 else 1_000
            return "started"
        if draw < 0.12:
            self.left = None
            return "stopped"
        if self.left and draw < 0.3:
            self.left = 0
            return "completed"
        # Now and then it has lost pieces.
        if self.left == 0 and draw > 0.97:
            self.left = 1_000
        return "none"

    def asks(self, event, want):
        identity = f"-SW0000-{self.port:05}-{self.life:06}"
        operation = Operation("announce", self.name, [], [], self.peer, identity, event, self.left or 0, want)
        self.history.operations.append(operation)
        content = bep15.announce_request(0, 0, self.info_hash, identity.encode(), self.port, left=operation.left,
                                         event=EVENTS[event], num_want=want)
        return [operation], content[16:], bep15.Action.ANNOUNCE


class Scraper(Asker):
    """Asks for the counts of one swarm, or of some at once."""

    def next(self):
        count = self.random.choice([1, 1, len(self.crowd.histories)])
        return self.asks(self.random.sample(range(len(self.crowd.histories)), count))

    def asks(self, swarms):
        operations = [Operation("scrape", self.name, [], []) for _ in swarms]
        for swarm, operation in zip(swarms, operations):
            self.crowd.histories[swarm].operations.append(operation)
        return operations, b"".join(self.crowd.info_hashes[swarm] for swarm in swarms), bep15.Action.SCRAPE


class Crowd:
    """The clients of some swarms, at the trackers of a cluster. Use it in a `with` statement.

    `hosts` are where they live. `liar`, if given, may alter what comes: it is called with (crowd, asker, reply), and
    returns the reply, for tests of whether lies are noticed.
    """

    def __init__(self, trackers, hosts, seed, swarms=4, peers_each=7, scrapers=4, think=0.12, patience=None, liar=None,
                 has_ipv6=True):
        self.trackers, self.hosts, self.liar, self.think = trackers, hosts, liar, think
        self.random = random.Random(seed)
        self.patience = patience or (lambda draw: draw.choice([1.2, 1.2, 2.5, 16]))
        self.start = time.monotonic()
        self.sent = self.answers = 0
        self.info_hashes = [self.random.randbytes(20) for _ in range(swarms)]
        self.histories = [History(info_hash.hex(), trackers.mode, trackers.profile, trackers.entry)
                          for info_hash in self.info_hashes]
        self._numbers = {member.host.ipv4: member.number for member in trackers.members}
        self._numbers |= {member.host.ipv6: member.number for member in trackers.members}
        self._connections, self._open, self._transaction = {}, {}, self.random.randrange(1 << 31)
        self._selector = selectors.DefaultSelector()
        self.askers = []
        places = [(host, host.ipv4) for host in hosts]
        if has_ipv6 and trackers.entry == "any":
            places += [(host, host.ipv6) for host in hosts]
        for swarm in range(swarms):
            # Every other swarm is of one family.
            few = places if swarm % 2 else places[:len(hosts)]
            for number in range(peers_each):
                host, address = few[number % len(few)]
                self._add(host, PeerAsker, swarm * 100 + number, swarm, address)
        for number in range(scrapers):
            host, address = places[number % len(places)]
            self._add(host, Scraper, f"scraper {number}", address)

    def _add(self, host, kind, *arguments):
        with host.entered():
            asker = kind(self, *arguments, random.Random(self.random.random()))
        self._selector.register(asker.socket, selectors.EVENT_READ, asker)
        self.askers.append(asker)
        return asker

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for asker in self.askers:
            asker.socket.close()
        self._selector.close()

    def now(self):
        """Seconds of the histories' clock."""
        return round(time.monotonic() - self.start, 6)

    # For askers

    def doors(self, address):
        """(number of the tracker, where it is asked), for one family."""
        if self.trackers.entry == "group":
            return [(0, self.trackers.group)]
        return [(member.number, (member.host.ipv6 if ":" in address else member.host.ipv4, self.trackers.port))
                for member in self.trackers.members]

    def door(self, address, number):
        doors = self.doors(address)
        return doors[number % len(doors)]

    def transaction(self, asker):
        self._transaction = (self._transaction + 1) % (1 << 32)
        self._open[self._transaction] = (asker, asker.operation)
        return self._transaction

    def connection(self, asker, now):
        """A connection id for an asker's address; None while there is none, which is asked for then."""
        connection = self._connections.setdefault(asker.address, Connection())
        if now < connection.good_until:
            return connection.id
        if now > connection.asked_at + CONNECT_PATIENCE:
            connection.asked_at = now
            connection.transaction = self._transaction = (self._transaction + 1) % (1 << 32)
            asker.door += 1
            try:
                door = self.door(asker.address, asker.door)[1]
                asker.socket.sendto(bep15.connect_request(connection.transaction), door)
            except OSError:
                pass
        return None

    # Time

    def run(self, seconds, until=lambda: False, pause=0.1):
        """Asks and listens for so long, or until something is so; between two looks at that is a pause."""
        end = time.monotonic() + seconds
        look = 0
        while (now := time.monotonic()) < end:
            if now > look:
                if until():
                    return True
                look = now + pause
            due = min(asker.work(now) for asker in self.askers)
            for key, _ in self._selector.select(max(min(due, look, end) - time.monotonic(), 0)):
                self._receive(key.data)
        return False

    def _receive(self, asker):
        while True:
            try:
                reply, source = asker.socket.recvfrom(65_536)
            except BlockingIOError:
                return
            except OSError:
                continue  # Nobody listens there: an ICMP message says so.
            if self.liar:
                reply = self.liar(self, asker, reply)
            if reply is not None:
                self._note(asker, reply, self._numbers.get(source[0]))

    def _note(self, asker, reply, number):
        at = self.now()
        action, transaction = struct.unpack_from("!II", reply)
        connection = self._connections.get(asker.address)
        if action == bep15.Action.CONNECT:
            if connection and transaction == connection.transaction:
                connection.id = bep15.connection_id(reply[8:])
                connection.good_until = time.monotonic() + CONNECTION_LIFE
            return
        if transaction not in self._open:
            return
        owner, operations = self._open[transaction]
        if action == bep15.Action.ERROR:
            text = reply[8:].decode(errors="replace")
            if "connection id" in text and connection:
                connection.good_until = 0
            answers = [{"error": text}] * len(operations)
        elif operations[0].kind == "announce":
            answers = [announced(bep15.announced(reply[8:], owner.socket.family))]
        else:
            answers = [{"seeders": one.seeders, "leechers": one.leechers, "completed": one.completed}
                       for one in bep15.scraped(reply[8:])]
        self.answers += action != bep15.Action.ERROR
        for operation, answer in zip(operations, answers, strict=True):
            operation.replies.append([at, {**answer, "from": number}])
        owner.answered(transaction)

    # The end

    def end(self, seconds=1.5):
        """Nobody asks anything new; what is open is waited for, for a while."""
        for asker in self.askers:
            asker.rests = True
        self.run(seconds, until=lambda: not any(asker.operation for asker in self.askers))

    def say_last_words(self, seconds):
        """Each peer says one thing more, and is waited for."""
        now = time.monotonic()
        peers = [asker for asker in self.askers if isinstance(asker, PeerAsker)]
        for asker in peers:
            asker.rests, asker.repeats, asker.patience = False, False, seconds
            asker.wakes_at = now + asker.random.random()
            asker.pause = lambda: float("inf")
        self.run(seconds + 1, until=lambda: all(asker.wakes_at == float("inf") for asker in peers))

    def observe(self, seconds):
        """Asks each tracker for the counts of all swarms, and one of them who is there; again until it answers.

        Returns whether all have.
        """
        everything = list(range(len(self.histories)))
        host = self.hosts[0]
        watcher = self._add(host, Scraper, "the last scraper", host.ipv4)
        watchers = [self._add(host, PeerAsker, 90 + swarm * 100, swarm, host.ipv4) for swarm in everything]
        for asker in (watcher, *watchers):
            asker.rests = True
        for door, _ in enumerate(self.doors(host.ipv4)):
            if not self._insist(watcher, door, lambda: watcher.asks(everything), seconds):
                return False
        for one in watchers:
            # A leecher is told of all, a seeder of leechers: together they tell who is what.
            for event, left in [("started", 1), ("none", 0), ("stopped", None)]:
                one.left = left
                if not self._insist(one, 0, lambda: one.asks(event, 200), seconds):
                    return False
        return True

    def _insist(self, asker, door, ask, seconds):
        """Has an asker ask one thing until it is answered."""
        end, told = time.monotonic() + seconds, []

        def next_one():
            operations, content, action = ask()
            told[:] = operations[:1]
            asker.rests = True
            return operations, content, action
        asker.repeats, asker.patience, asker.next = False, 2.0, next_one
        while time.monotonic() < end:
            asker.door, asker.rests, asker.wakes_at = door, False, 0
            self.run(asker.patience + 1, until=lambda: asker.rests and not asker.operation, pause=0.01)
            if told and told[0].answers:
                return True
        return False


def announced(answer):
    return {"interval": answer.interval, "seeders": answer.seeders, "leechers": answer.leechers,
            "peers": [spelled(str(ipaddress.ip_address(address)), port) for address, port in answer.peers]}
