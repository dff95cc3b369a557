"""Load for as long as asked, while a tracker is killed, cut off or its broker restarted every twenty seconds.

    TRACKER=… /usr/bin/python3 Tests/SystemTests/soak.py [--minutes 10] [--bus rabbitmq] [--rate 1000] [--seed 1]

As root, for network namespaces. Each fault is drawn from the seed. Ends with 0 when no request was left unanswered
beyond the bound, memory was flat and all trackers hold the same, which is what `test_soak.py` asks of a short run.
"""

import argparse
import random
import sys
import time

import brokers
import cluster

BUSES = {"rabbitmq": brokers.RabbitMQ, "activemq": brokers.ActiveMQ, "multicast": "multicast"}


class Soak:
    """A cluster in `quorum` mode, its load, and what is done to it.

    Clients that get no answer ask the next tracker, as BEP 12 has it.
    """

    GROWTH = 1.5
    """The most that memory may grow between the middle and the end of a run."""

    def __init__(self, trackers, seed, rate, say=print):
        self.trackers, self.rate, self.say = trackers, rate, say
        self.random = random.Random(seed)
        self.peers = trackers.crowd(
            trackers.members, swarms=80, peers_each=150, seed=seed, rate=rate, in_flight=4 * rate, returns=True)
        self._client = trackers.client(trackers.members, timeout=0.3, tries=100)
        self.faults, self._kinds = {}, []
        self.slowest_heal = 0.0  # Seconds: of a broker, until it takes connections.

    def run(self, seconds, period):
        """Runs for so long, and until each kind of fault has been."""
        end, memory = time.monotonic() + seconds, []
        while time.monotonic() < end or len(self.faults) < len(self._all_kinds()):
            self._announce(period / 2)
            heal = self._strike()
            self._announce(period / 2)
            begin = time.monotonic()
            heal()
            self.slowest_heal = max(self.slowest_heal, time.monotonic() - begin)
            self._settle()
            memory.append(max(member.memory() for member in self.trackers.members))
            self.say(f"    {self.peers.answers} answers, slowest {self.peers.slowest:.2f} s, {memory[-1] >> 20} MiB")
        self.memory = memory

    def check(self, bound):
        bound += self.slowest_heal
        assert self.peers.slowest < bound, \
            f"an announce was unanswered for {self.peers.slowest:.1f} s, of {bound:.1f} s that it may be"
        half = self.memory[len(self.memory) // 2:]
        assert half[-1] < half[0] * self.GROWTH, f"memory grows: {[size >> 20 for size in self.memory]} MiB"
        self.trackers.wait_until_equal()
        self.peers.check(self._client)

    def _announce(self, seconds):
        self.peers.announce(self, seconds)

    def connect(self):
        """A connection id, which is good at all trackers; of whichever answers."""
        return self._client.connect()

    def _settle(self):
        self.trackers.wait_until_serving(60)
        self.peers.settle(self, 30)

    def _all_kinds(self):
        kinds = ["kill the master", "kill a slave", "cut off a tracker"]
        return kinds + ["restart the broker"] if self.trackers.brokers else kinds

    def _strike(self):
        """Does something bad; returns what mends it."""
        if not self._kinds:
            # All of them, in an order of their own each time.
            self._kinds = self._all_kinds()
            self.random.shuffle(self._kinds)
        kind = self._kinds.pop()
        self.faults[kind] = self.faults.get(kind, 0) + 1
        self.say(f"  {kind}")
        master = self.trackers.master()
        slaves = [member for member in self.trackers.members if member is not master]
        match kind:
            case "kill the master":
                return self._kill(master)
            case "kill a slave":
                return self._kill(self.random.choice(slaves))
            case "restart the broker":
                broker = self.trackers.brokers[0]
                broker.kill()
                broker.start(wait=False)
                return broker.wait
            case _:
                lonely = self.random.choice(self.trackers.members)
                others = [member.host for member in self.trackers.members if member is not lonely]
                others += [broker.host for broker in self.trackers.brokers]
                cut = self.trackers.partition([lonely.host], others)
                cut.__enter__()
                return lambda: cut.__exit__(None, None, None)

    def _kill(self, member):
        member.kill()
        return member.start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--bus", choices=BUSES, default="rabbitmq")
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--period", type=float, default=20)
    options = parser.parse_args()
    cluster.require_cluster()
    with cluster.Cluster(BUSES[options.bus]) as trackers:
        soak = Soak(trackers, options.seed, options.rate, say=lambda text: print(text, flush=True))
        soak.run(options.minutes * 60, options.period)
        soak.check(BOUND)
        print(f"{sum(soak.faults.values())} faults: {soak.faults}; slowest answer {soak.peers.slowest:.2f} s; "
              f"memory {[size >> 20 for size in soak.memory]} MiB")


BOUND = 30.0
"""Seconds that an announce may be unanswered, beside those that a broker itself takes to start anew: trackers that have
tried it in vain wait for a moment before they do again, and a busy machine takes its time."""

if __name__ == "__main__":
    sys.exit(main())
