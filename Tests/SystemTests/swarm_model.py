"""A single tracker's swarm as a child would keep it, and clients that ask it: histories that are right, and, on
demand, wrong.

It shares no code with the checker that is tested with it. Operations happen at one moment between request and reply;
some are never answered, and happen late or not at all.
"""

import heapq
import random

from history import History, Operation


class Swarm:
    """Peers by address: {"id", "left", "counted"}."""

    def __init__(self):
        self.peers, self.completed = {}, 0

    def announce(self, operation):
        peer = self.peers.get(operation.peer)
        if operation.event == "stopped":
            self.peers.pop(operation.peer, None)
            return
        is_other = peer is not None and peer["id"] != operation.id
        counted = peer is not None and peer["counted"]
        if operation.event == "started" and operation.left > 0 and is_other:
            counted = False
        if operation.event == "completed" and operation.left == 0 and not is_other and not (peer and peer["counted"]):
            self.completed += 1
            counted = True
        if peer is None and operation.left == 0:
            counted = True
        self.peers[operation.peer] = {"id": operation.id, "left": operation.left, "counted": counted}

    def candidates(self, operation):
        """Whom an announce may be told of."""
        if operation.event == "stopped":
            return []
        return sorted(name for name, peer in self.peers.items() if name != operation.peer
                      and name.startswith("[") == operation.peer.startswith("[")
                      and (operation.left > 0 or peer["left"] > 0))

    def counts(self):
        seeders = sum(peer["left"] == 0 for peer in self.peers.values())
        return {"seeders": seeders, "leechers": len(self.peers) - seeders}

    def answer(self, operation, limit, draw):
        """What the swarm answers; `limit` is the most peers that are told."""
        if operation.kind == "scrape":
            return {**self.counts(), "completed": self.completed}
        candidates = self.candidates(operation)
        return {**self.counts(), "interval": 1800, "peers": draw.sample(candidates, min(limit, len(candidates)))}


class World:
    """Clients of one swarm, each with a peer, that ask one thing after another. `history` is what they have seen.

    `fault` may change what happens: it is called with (world, operation) when an operation happens, and returns
    whether it has taken care of it.
    """

    def __init__(self, seed, clients=6, scrapers=1, count=200, silence=0.05, errors=0.02, overlaps=0.0, fault=None,
                 wants=(200, 200, 200, 2, 0)):
        self.random, self.fault, self.swarm = random.Random(seed), fault, Swarm()
        self.history = History(swarm="00" * 20)
        self.clients, self.scrapers, self.count = clients, scrapers, count
        self.silence, self.errors, self.overlaps, self.wants = silence, errors, overlaps, wants
        self.lives = {}
        self.past = []  # Counts after each change, for reads of the past.
        self._queue, self._numbers = [], 0

    def run(self):
        for client in range(self.clients + self.scrapers):
            self._at(self.random.random(), self._ask, client)
        while self._queue:
            time, _, act, arguments = heapq.heappop(self._queue)
            self.now = time
            act(*arguments)
        self.history.operations.sort(key=lambda operation: operation.called)
        return self.history

    def _at(self, time, act, *arguments):
        self._numbers += 1
        heapq.heappush(self._queue, (time, self._numbers, act, arguments))

    def _ask(self, client):
        if len(self.history.operations) >= self.count:
            return
        operation = self._next(client)
        self.history.operations.append(operation)
        draw = self.random.random()
        if draw < self.silence:
            if draw < self.silence * 0.7:
                self._at(self.now + self.random.expovariate(0.5), self._happen, operation, None)
            self._at(self.now + 2, self._ask, client)
        elif draw < self.silence + self.errors:
            after = self.now + self.random.random() * 0.2
            operation.replies.append([after, {"error": "tracker is busy, try again soon"}])
            self._at(after, self._ask, client)
        elif self.overlaps and self.random.random() < self.overlaps:
            # It loses patience, and is answered all the same.
            self._at(self.now + self.random.expovariate(2), self._happen, operation, client, False)
            self._at(self.now + self.random.random() * 0.2, self._ask, client)
        else:
            self._at(self.now + self.random.expovariate(10), self._happen, operation, client)

    def _next(self, client):
        if client >= self.clients:
            return Operation("scrape", f"scraper {client}", [[self.now, 1]], [])
        life = self.lives.setdefault(client, {"number": 0, "left": None})
        draw = self.random.random()
        if life["left"] is None:
            life["number"] += draw < 0.5
            life["left"] = 0 if draw < 0.1 else 3
            event = "started"
        elif draw < 0.15:
            event, life["left"] = "stopped", None
        elif life["left"] and draw < 0.4:
            event, life["left"] = "completed", 0
        else:
            event = "none"
        family = client % 5 == 4
        peer = f"[fd00::1]:{2000 + client}" if family else f"10.0.0.1:{2000 + client}"
        return Operation("announce", f"client {client}", [[self.now, 1]], [], peer, f"{client}-{life['number']}", event,
                         life["left"] or 0, self.random.choice(self.wants))

    def _happen(self, operation, client, goes_on=True):
        answer = None
        if not (self.fault and (answer := self.fault(self, operation))):
            answer = self.happen(operation)
        if client is None:
            return
        after = self.now + self.random.expovariate(10)
        operation.replies.append([after, answer])
        if goes_on:
            self._at(after + self.random.expovariate(5), self._ask, client)

    def happen(self, operation):
        """The operation happens now, as it should; returns the answer."""
        if operation.kind == "announce":
            self.swarm.announce(operation)
        answer = self.answer(operation)
        self.past.append({**self.swarm.counts(), "completed": self.swarm.completed})
        return answer

    def answer(self, operation):
        limit = self.history.limit(operation) if operation.kind == "announce" else 0
        return self.swarm.answer(operation, limit, self.random)

    def later(self, seconds, act, *arguments):
        self._at(self.now + seconds, act, *arguments)
