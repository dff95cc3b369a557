"""Many peers that announce as fast as they are answered, and remember what they were told.

What was answered is promised; what was asked and not yet answered may have happened or not. So after
a crash each peer is known to be in one state, or in one of two.
"""

import collections
import dataclasses
import random
import select
import socket
import struct
import time

import bep15
from namespaces import PATIENCE

FIRST_PORT = 1_024


@dataclasses.dataclass(frozen=True)
class State:
    """A peer as a tracker should know it."""
    left: int | None = None  # None: not there.
    has_completed: bool = False

    @property
    def is_seeder(self):
        return self.left == 0

    @property
    def is_leecher(self):
        return self.left is not None and self.left > 0


class Peer:
    def __init__(self, swarm, port):
        self.swarm, self.port = swarm, port
        self.peer_id = b"-SW0000-" + struct.pack("!III", swarm, port, 0)
        self.promised = State()
        self.asked = None  # The state that an announce under way leads to.
        self.request, self.sent_at, self.asked_at = None, 0, 0
        self.door = port  # Which of several trackers it asks.
        self.is_gone = False
        self.repeated = None  # The state that a late copy of an announce may lead to, where such are known to come.
        self.story = collections.deque(maxlen=12)  # The last that it asked and was told.

    @property
    def possible(self):
        """The states that it may be in."""
        return [self.promised] + ([self.asked] if self.request else []) + ([self.repeated] if self.repeated else [])


class Crowd:
    """Peers of some swarms. `in_flight` announces are under way at most, and `rate` begin in a second at most.

    With several addresses, of trackers that act as one, a peer that gets no answer asks the next (BEP 12). One of those
    that were silent may still hand the request on when it is back, so such a peer rests until none does any more.
    `returns` has peers come back that have stopped: a crowd for any length of time. `copies_come_late`: what was asked
    more than once may be decided once more, after later words of the same peer.
    """

    PATIENCE = 0.5
    """Seconds after which a request is sent again."""
    REST = 16.0
    """Seconds: a tracker of a cluster keeps a request for 15."""

    def __init__(self, port, swarms, peers_each, seed, in_flight=200, address="127.0.0.1", rate=None, returns=False,
                 copies_come_late=False):
        self._random = random.Random(seed)
        assert peers_each < 200, "a reply must be able to list a whole swarm"
        addresses = [address] if isinstance(address, str) else address
        self._door_count = len(addresses)
        self._socket = bep15.Channel(*addresses, port=port)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.setblocking(False)
        self.info_hashes = [self._random.randbytes(20) for _ in range(swarms)]
        self.peers = [Peer(swarm, FIRST_PORT + number) for swarm in range(swarms) for number in range(peers_each)]
        self._idle, self._under_way = self.peers.copy(), {}
        self._in_flight, self._rate, self._returns = in_flight, rate, returns
        self._copies_come_late = copies_come_late
        self._resting = []  # (until when, peer), in that order.
        self.slowest = 0.0  # The longest that an announce had no answer, in seconds.
        self.answers = self.refusals = 0
        self._transaction = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def announce(self, client, seconds, until=lambda: False):
        """Announces for so long, or until the condition holds (asked often); leaves what is under way."""
        connection, start, look = client.connect(), time.monotonic(), 0
        asked = 0
        while (now := time.monotonic()) < start + seconds:
            if now > look:
                if until():
                    return True
                look = now + 0.005
                self._ask_again(now, connection)
                while self._resting and self._resting[0][0] < now:
                    self._idle.append(self._resting.pop(0)[1])
            most = (now - start) * self._rate if self._rate else float("inf")
            while len(self._under_way) < self._in_flight and self._idle and asked < most:
                self._ask(now, connection)
                asked += 1
            select.select([self._socket], [], [], 0.005)
            self._receive()
        return False

    def settle(self, client, seconds=10):
        """Waits until nothing is under way; `seconds` are those of an idle machine."""
        seconds *= PATIENCE
        connection, end = client.connect(), time.monotonic() + seconds
        while self._under_way:
            assert time.monotonic() < end, f"{len(self._under_way)} announces have no answer after {seconds} s"
            self._ask_again(time.monotonic(), connection)
            select.select([self._socket], [], [], 0.05)
            self._receive()

    def rest(self, client):
        """Announces until a second has brought no answer: what was under way has come."""
        for _ in range(60):
            before = self.answers + self.refusals
            self.announce(client, 1)
            if self.answers + self.refusals == before:
                return
        raise AssertionError(f"somebody goes on answering: {self.answers} answers, {self.refusals} refusals")

    def forget(self):
        """What is under way will not be answered any more: the peers keep both possible states, and rest."""
        self._under_way = {}

    def _ask(self, now, connection):
        at = self._random.randrange(len(self._idle))
        self._idle[at], self._idle[-1] = self._idle[-1], self._idle[at]
        peer = self._idle.pop()
        event, peer.asked = self._next(peer)
        self._transaction += 1
        peer.transaction, peer.asked_at = self._transaction, now
        peer.request = bep15.announce_request(
            connection, self._transaction, self.info_hashes[peer.swarm], peer.peer_id, peer.port,
            left=peer.asked.left or 0, event=event, num_want=5)
        self._under_way[self._transaction] = peer
        peer.story.append(f"{time.time():.3f} asks: {event.name} left {peer.asked.left}")
        self._send(peer, now)

    def _next(self, peer):
        """A plausible next step of a life: started, progress, completed, stopped for ever."""
        now, draw = peer.promised, self._random.random()
        if now.left is None:
            return bep15.Event.STARTED, dataclasses.replace(now, left=0 if now.has_completed else 1_000_000)
        if draw < 0.1:
            return bep15.Event.STOPPED, dataclasses.replace(now, left=None)
        if now.is_leecher and draw < 0.3:
            return bep15.Event.COMPLETED, State(left=0, has_completed=True)
        return bep15.Event.NONE, dataclasses.replace(now, left=max(now.left - 1, 1) if now.left else 0)

    def _ask_again(self, now, connection):
        for peer in list(self._under_way.values()):
            if peer.sent_at + self.PATIENCE < now:
                peer.request = struct.pack("!Q", connection) + peer.request[8:]
                peer.door += 1
                if self._copies_come_late:
                    peer.repeated = peer.asked
                peer.story.append(f"{time.time():.3f} asks again")
                self._send(peer, now)

    def _send(self, peer, now):
        peer.sent_at = now
        try:
            self._socket.ask(peer.request, peer.door)
        except OSError:
            pass  # Sent again, later.

    def _receive(self):
        while True:
            try:
                reply = self._socket.recv(2_048)
            except (BlockingIOError, ConnectionRefusedError):
                return
            action, transaction = struct.unpack_from("!II", reply)
            peer = self._under_way.pop(transaction, None)
            if not peer:
                continue  # The second answer to what was sent twice.
            if action == bep15.Action.ANNOUNCE:
                self.answers += 1
                has_stopped = peer.asked.left is None
                peer.promised, peer.request = peer.asked, None
                peer.is_gone = has_stopped
                peer.story.append(f"{time.time():.3f} is answered")
            else:
                self.refusals += 1
                peer.request = None  # Refused: nothing has happened.
                peer.story.append(f"{time.time():.3f} is refused")
            now = time.monotonic()
            self.slowest = max(self.slowest, now - peer.asked_at)
            if self._door_count > 1 and peer.sent_at > peer.asked_at:
                self._resting.append((now + self.REST, peer))
            elif not peer.is_gone or self._returns:
                self._idle.append(peer)

    # What must be there

    def check(self, client):
        """Asserts that the tracker knows what it has answered, by scrapes and by the peers that it lists."""
        self.check_counts(client)
        members = self._members()
        for swarm in random.Random(len(self.peers)).sample(range(len(members)), min(20, len(members))):
            self._check_list(client, swarm, members[swarm])

    def _members(self):
        members = [[] for _ in self.info_hashes]
        for peer in self.peers:
            members[peer.swarm].append(peer)
        return members

    def check_counts(self, client):
        """The same by scrapes alone."""
        scraped = []
        for at in range(0, len(self.info_hashes), 74):
            scraped += client.scrape(*self.info_hashes[at:at + 74])
        for swarm, (found, peers) in enumerate(zip(scraped, self._members())):
            for name, of in [("seeders", lambda state: state.is_seeder), ("leechers", lambda state: state.is_leecher),
                             ("completed", lambda state: state.has_completed)]:
                least = sum(all(map(of, peer.possible)) for peer in peers)
                most = sum(any(map(of, peer.possible)) for peer in peers)
                count = getattr(found, name)
                if not least <= count <= most:
                    problem = f"swarm {swarm}: {count} {name}, and answers promise {least} to {most}"
                    try:
                        self._check_list(client, swarm, peers)
                    except AssertionError as error:
                        problem += f"; {error}"
                    raise AssertionError(problem)

    def _check_list(self, client, swarm, peers):
        # A leecher is told of all, a seeder of leechers: together they tell who is what.
        port, info_hash = FIRST_PORT - 1, self.info_hashes[swarm]
        everybody = client.announce(info_hash, port, left=1, num_want=200, event=bep15.Event.STARTED).peers
        leechers = client.announce(info_hash, port, left=0, num_want=200).peers
        client.announce(info_hash, port, left=1, event=bep15.Event.STOPPED)
        for what, listed, of in [("peers", everybody, lambda state: state.left is not None),
                                 ("leechers", leechers, lambda state: state.is_leecher)]:
            ports = {port for _, port in listed}
            assert len(ports) == len(listed), f"swarm {swarm}: {what} come twice: {listed}"
            must = {peer.port for peer in peers if all(map(of, peer.possible))}
            may = {peer.port for peer in peers if any(map(of, peer.possible))}
            stories = [f"\n  port {peer.port}: {'; '.join(peer.story)}" for peer in peers
                       if peer.port in (must - ports) | (ports - may)]
            assert must <= ports, f"swarm {swarm}: {what} are lost: ports {sorted(must - ports)}{''.join(stories)}"
            assert ports <= may, f"swarm {swarm}: {what} that should not be: {sorted(ports - may)}{''.join(stories)}"
