"""Five trackers, and the master is killed: the one whose turn it is becomes master, in one election.

Nothing else goes wrong meanwhile. So the policy says who is next, the command of `--on-master` runs once, on that
tracker, and nobody displaces it. Two kills each here; forty each with SWARMKEEPER_FAILOVERS=40 (`make failovers`).

With `embedded` the broker is inside a tracker of another cluster, that nobody kills: what becomes of a cluster whose
bus dies together with its master is the affair of `test_brokers.py`.
"""

import os
import time
import unittest

import brokers
import cluster
from namespaces import wait_until
from world import tracker_program

setUpModule = cluster.require_cluster

KILLS = int(os.environ.get("SWARMKEEPER_FAILOVERS", "2"))
COUNT = 5
CALM = 2 * cluster.DETECTION
"""Seconds after an election in which nobody may stand: as long as it takes to miss a master, twice."""


def preferred(profile, living, last):
    """Whose turn it is after the death of a master, by the words of the documentation."""
    if profile == "classic":
        return max(living)
    if profile == "lowest":
        return min(living)
    return min((number for number in living if number > last), default=min(living))


class Embedded(brokers.Broker):
    """The small broker inside a tracker: of one that shares the bus, and is of another cluster."""

    program = "tracker"

    @property
    def place(self):
        return f"{self.host.ipv4}:{brokers.PORT}"

    def _command(self):
        key = self.directory / "cluster.key"
        key.write_text(os.urandom(32).hex())
        key.chmod(0o600)
        return [tracker_program(), "serve", "--bus", f"embedded:{self.place}", "--cluster-key-file", key,
                "--cluster-name", "another", "--udp", "127.0.0.1:6969", "--console", "none",
                "--data", self.directory / "data"]

    def _prepare(self):
        (self.directory / "data").mkdir(exist_ok=True)


class Trackers(cluster.Cluster):
    """A cluster of five in survivor mode that writes down who has become master."""

    def __init__(self, bus, profile):
        super().__init__(
            bus, count=COUNT, mode="survivor", is_mute=True, flags=["--profile", profile],
            bus_url=None if bus == "multicast" else lambda trackers: f"embedded:{trackers.brokers[0].place}")

    def _build(self):
        self.hook = self.directory / "masters"
        self.hook.touch()
        self.flags += ["--on-master", f'echo "$TRACKER_ID $TRACKER_EPOCH" >> {self.hook}']
        super()._build()

    def masters(self):
        """(id, epoch) of each that has become master, in the order in which the command ran."""
        return [tuple(line.split()) for line in self.hook.read_text().splitlines()]

    def candidacies(self):
        return {member.number: member.metric("swarmkeeper_cluster_candidacies_total")
                for member in self.members if member.is_up}

    def state(self):
        """Who is master, and what all hold; None while they are not of one mind."""
        master = self.master()
        digests = self.digests()
        views = [member.cluster_view() for member in self.members if member.is_up]
        if not master or len(digests) != 1 or None in digests or not all(view and view["isServing"] for view in views):
            return None
        return master.number

    def wait_until_calm(self, master=None):
        """Waits until one master has been followed by all for a while; by the one that is given, where one is."""
        since, seen = time.monotonic(), None

        def is_calm():
            nonlocal since, seen
            state = self.state(), len(self.masters())
            if state != seen or state[0] is None or master not in (None, state[0]):
                since, seen = time.monotonic(), state
            return time.monotonic() - since >= CALM
        wait_until(is_calm, 90, lambda: f"one master that all follow ({master or 'any'}); {self.views()}")
        return self.master()


class Policies(unittest.TestCase):
    def over(self, bus, profile):
        print(flush=True)
        with Trackers(bus, profile) as trackers:
            # A preferred one that comes back is handed the role; with turns, nobody is.
            top = {"classic": COUNT, "lowest": 1}.get(profile)
            for kill in range(1, KILLS + 1):
                self.kill_the_master(trackers, profile, trackers.wait_until_calm(top), kill)

    def kill_the_master(self, trackers, profile, master, kill):
        living = [member.number for member in trackers.members if member is not master]
        heir = preferred(profile, living, master.number)
        masters = trackers.masters()
        stood = trackers.candidacies()
        began = time.monotonic()
        master.kill()
        wait_until(lambda: trackers.state() not in (None, master.number), 30, lambda: f"a master; {trackers.views()}")
        seconds = time.monotonic() - began
        time.sleep(CALM)
        became = trackers.masters()[len(masters):]
        stood = {number: count - stood[number] for number, count in trackers.candidacies().items()}
        print(f"    {profile}, kill {kill}: tracker {master.number} is dead, tracker {heir} is next; "
              f"masters since: {became}, {sum(stood.values()):.0f} stood, {seconds:.1f} s", flush=True)
        self.assertEqual([number for number, _ in became], [str(heir)], "the command ran on others, or twice")
        self.assertEqual(stood, {number: 1.0 if number == heir else 0.0 for number in living})
        self.assertEqual(trackers.state(), heir)
        master.start()

    def test_multicast_classic(self):
        self.over("multicast", "classic")

    def test_multicast_rotating(self):
        self.over("multicast", "rotating")

    def test_multicast_lowest(self):
        self.over("multicast", "lowest")

    def test_embedded_classic(self):
        self.over(Embedded, "classic")

    def test_embedded_rotating(self):
        self.over(Embedded, "rotating")

    def test_embedded_lowest(self):
        self.over(Embedded, "lowest")


if __name__ == "__main__":
    unittest.main()
