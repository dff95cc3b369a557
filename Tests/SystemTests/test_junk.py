"""Junk on the bus and in the group of the clients: counted, dropped, and nothing else.

Somebody may write to the broker's topics, or to the network, and has recorded what the trackers said; he lacks the
cluster's key. Of what he sends, nothing may change who is master or what the trackers hold, fill memory or log, or
keep clients from being answered. What is counted, docs/bus.md says.
"""

import collections
import os
import random
import socket
import struct
import time
import unittest

import bep15
import brokers
import cluster
import flood
import stomp
from namespaces import wait_until
from world import PORT

setUpModule = cluster.require_cluster

PATIENT = ["--missed", 5]
"""Nobody is to be taken for dead who is merely held up by this machine: an election is to mean something."""
MIB = 1 << 20
SO_RCVBUFFORCE = 33
"""Of Linux; Python has no name for it."""
NAME = "swarmkeeper"
"""Of the cluster: the default."""
TOPIC = f"/topic/swarmkeeper.{NAME}"

# A frame of the bus (Sources/Wire/Bus/BusFrame.swift).
HEAD = struct.Struct("!4sBIQQ")
MAGIC, MAC_LENGTH = b"SKB\x01", 16
MESSAGES, PART, GREETING, WANTED, MARK = range(1, 6)
Head = collections.namedtuple("Head", "magic kind cluster session sequence")


def head(frame):
    """The head of a frame; None where the bytes are none."""
    if len(frame) < HEAD.size + MAC_LENGTH:
        return None
    read = Head(*HEAD.unpack_from(frame))
    return read if read.magic == MAGIC and MESSAGES <= read.kind <= MARK else None


class BrokerEar:
    """Hears all that a cluster says over a broker, and speaks there."""

    LONGEST = 3 * MIB
    counts_replays = counts_long = True
    counts_at_once = False
    """Over a broker trackers tell their counts once a second."""
    arriving = 1.0
    """The part of what is said that arrives at the least."""

    def __init__(self, trackers):
        broker = trackers.brokers[0]
        with trackers.probe.entered():
            self._client = stomp.Client(broker.host.ipv4, brokers.PORT, brokers.USER, brokers.PASSWORD)
        for destination in [TOPIC, f"{TOPIC}.*"]:
            self._client.subscribe(destination)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._client.__exit__(*exception)

    def heard(self):
        """Takes out what came: (destination, frame)."""
        heard, self._client.heard = self._client.heard, []
        return heard

    def say(self, frames, destination=None):
        self._client.send(destination or TOPIC, *frames)


class GroupEar:
    """Hears all that a cluster says in its multicast group, and speaks there."""

    LONGEST = 60_000
    # Repetitions belong to the repair of losses, and what is longer than a datagram of ours is not read.
    counts_replays = counts_long = False
    counts_at_once = True
    arriving = 0.9
    PORTION, PAUSE = 25, 0.005
    """Datagrams, and seconds after them, so that the kernel's buffers hold what comes."""

    def __init__(self, trackers):
        group, port = cluster.BUS_GROUP.split(":")
        self._group = (group, int(port))
        own = socket.inet_aton(trackers.probe.ipv4)
        with trackers.probe.entered():
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 32 * MIB)
        self._socket.bind(self._group)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + own)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        self._socket.setblocking(False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def heard(self):
        heard = []
        while True:
            try:
                heard.append((self._group, self._socket.recv(65_536)))
            except BlockingIOError:
                return heard

    def say(self, frames, destination=None):
        self._socket.setblocking(True)
        for number, frame in enumerate(frames, 1):
            self._socket.sendto(frame, destination or self._group)
            if number % self.PORTION == 0:
                time.sleep(self.PAUSE)
        self._socket.setblocking(False)


class Junk:
    """Makes junk of what was recorded: for each kind a list of frames, none of which is authentic."""

    def __init__(self, recorded, longest, seed=1):
        self._random = random.Random(seed)
        self._recorded, self._longest = recorded, longest
        self._mark = head(recorded[0])

    def kinds(self):
        return {"random bytes": self.noise(), "truncated": self.truncated(), "lengthened": self.lengthened(),
                "damaged": self.damaged(), "forged": self.forged(), "foreign": self.foreign(),
                "requests of clients": [flood.junk(self._random) for _ in range(50)]}

    def noise(self):
        lengths = [*range(64), *(self._random.randrange(64, 1_400) for _ in range(100))]
        headed = [MAGIC + self._random.randbytes(self._random.randrange(200)) for _ in range(100)]
        return [self._random.randbytes(length) for length in lengths] + headed

    def huge(self):
        return [self._random.randbytes(self._longest), MAGIC + bytes(self._longest - 4),
                self._forge(MESSAGES, self._mark.session, bytes(self._longest - 100))]

    def truncated(self):
        short = min(self._recorded, key=len)
        cuts = [short[:length] for length in range(len(short))]
        return cuts + [frame[:self._random.randrange(len(frame))] for frame in self._some(100)]

    def lengthened(self):
        return [frame + self._random.randbytes(self._random.randrange(1, 40)) for frame in self._some(50)]

    def damaged(self):
        """One bit is another."""
        short = bytearray(min(self._recorded, key=len))
        frames = [bytearray(frame) for frame in self._some(100)]
        places = [(short, bit) for bit in range(8 * len(short))]
        places += [(frame, self._random.randrange(8 * len(frame))) for frame in frames]
        damaged = []
        for frame, bit in places:
            changed = bytearray(frame)
            changed[bit // 8] ^= 1 << bit % 8
            damaged.append(bytes(changed))
        return damaged

    def forged(self):
        """Plausible in all but the MAC: with sessions of the trackers and others."""
        sessions = [head(frame).session for frame in self._some(50)]
        sessions += [self._random.getrandbits(64) for _ in range(100)]
        frames = []
        for session in sessions:
            kind = self._random.randrange(MESSAGES, MARK + 1)
            body = {MESSAGES: struct.pack("!QI", 0, 100) + self._random.randbytes(100),
                    PART: struct.pack("!QQII", 0, 1, 0, 0xFFFF_FFFF) + bytes(100),
                    GREETING: struct.pack("!QHQB", 1, 1, self._mark.session, 1),
                    WANTED: struct.pack("!QHQQ", self._mark.session, 1, 1, 1 << 40),
                    MARK: struct.pack("!Q", 1 << 60)}[kind]
            frames.append(self._forge(kind, session, body))
        return frames

    def foreign(self):
        """Of a cluster of another name, and of another version of the bus."""
        frames = self._some(50)
        return [frame[:5] + self._random.randbytes(4) + frame[9:] for frame in frames] + \
            [b"SKB\x02" + frame[4:] for frame in frames]

    def _some(self, count):
        return self._random.choices(self._recorded, k=count)

    def _forge(self, kind, session, body):
        sequence = self._random.choice([0, 1, self._random.getrandbits(64)])
        return HEAD.pack(MAGIC, kind, self._mark.cluster, session, sequence) + body + self._random.randbytes(MAC_LENGTH)


class JunkTest(unittest.TestCase):

    MOST_MEMORY = 64 * MIB
    """That a tracker may need for all of it; the bound of what is held of unproven senders is 16 MiB."""
    MOST_LINES = 5
    is_quiet = True
    """No client asks while something is sent."""

    def annoy(self, trackers, ear, peers):
        """The whole of it: while all is quiet, while clients ask, and after everybody was started again."""
        self.trackers, self.ear, self.peers = trackers, ear, peers
        self.client, self.drops = trackers.client(trackers.members[0]), trackers.drops()
        self.peers.announce(self.client, 1)
        self.peers.settle(self.client)
        self.rejected = self.count_rejected()
        self.assertEqual(self.rejected, 0, "nothing that trackers say is rejected")
        recording = self.record()
        frames = [frame for _, frame in recording]
        junk = Junk(frames, ear.LONGEST)
        memory = [member.memory() for member in trackers.members]
        lines = [self.count_lines(member) for member in trackers.members]
        self.send_junk(junk, frames)
        self.replay(recording)
        self.bother_clients_ports()
        # Once more, while clients ask.
        self.go_on(lambda: self.send_junk(junk, frames))
        self.check_strangers()
        print(f"\n    {self.rejected} frames rejected; memory grew by "
              f"{max(member.memory() - before for member, before in zip(trackers.members, memory)) / MIB:.1f} MiB",
              flush=True)
        for member, before, said in zip(trackers.members, memory, lines):
            self.assertLess(member.memory() - before, self.MOST_MEMORY)
            self.assertLessEqual(self.count_lines(member) - said, self.MOST_LINES, member.log[-2_000:])
        self.replay_to_later_lives(recording)
        self.peers.check(self.client)

    def record(self):
        """What the trackers say, of each kind that matters, while peers announce."""
        recording = []
        self.ear.heard()

        def is_enough():
            self.peers.announce(self.client, 0.3)
            recording.extend(self.ear.heard())
            kinds = collections.Counter(head(frame).kind for _, frame in recording)
            return kinds[MESSAGES] >= 100 and kinds[GREETING] >= 6
        wait_until(is_enough, 20, "a recording")
        self.peers.settle(self.client)
        self.trackers.wait_until_equal()
        self.sessions = {head(frame).session for _, frame in recording}
        self.assertEqual(len(self.sessions), len(self.trackers.members))
        return recording

    # What is sent

    def send_junk(self, junk, recorded):
        sent = junk.kinds() | {"huge": junk.huge()}
        if not self.is_quiet or not self.ear.counts_at_once:
            sent = {"all kinds": [frame for frames in sent.values() for frame in frames]}
        before = self.state() if self.is_quiet else None
        for kind, frames in sent.items():
            least = most = 0
            for frame in frames:
                read = head(frame)
                # Whoever seems to have sent it himself does not look at it; what is too long nobody looks at.
                is_own = read and read.session in self.sessions and read.cluster == head(recorded[0]).cluster \
                    and len(frame) <= MIB
                count = len(self.trackers.members) - (1 if is_own else 0)
                most += count
                least += count if len(frame) < 2_000 or self.ear.counts_long else 0
            self.say(frames)
            self.expect_rejected(int(least * self.ear.arriving), most, kind)
        if self.is_quiet:
            self.assertEqual(self.state(), before)

    def say(self, frames, destination=None):
        """In portions, so that clients have their turn."""
        for at in range(0, len(frames), 50):
            self.ear.say(frames[at:at + 50], destination)
            if not self.is_quiet:
                self.peers.announce(self.client, 0.02)

    def replay(self, recording):
        """At once: the numbers tell."""
        before = self.state()
        expected = 0
        by_place = collections.defaultdict(list)
        for place, frame in recording:
            by_place[place].append(frame)
        for place, frames in by_place.items():
            if self.ear.counts_replays:
                numbered = sum(head(frame).kind in [MESSAGES, PART] for frame in frames)
                # Heard by all but the sender, or by one.
                expected += numbered * (len(self.trackers.members) - 1 if place == TOPIC else 1)
            self.say(frames, place)
        self.expect_rejected(expected, expected, "replayed")
        self.assertEqual(self.state(), before)

    def replay_to_later_lives(self, recording):
        """What an earlier life of the trackers said, to the next one: they have not heard those numbers."""
        for member in self.trackers.members:
            member.kill()
        for member in self.trackers.members:
            member.start()
        self.trackers.wait_until_serving()
        later = self.record()
        before, lives, memory = self.state(), self.lives(), [member.memory() for member in self.trackers.members]
        frames = [frame for _, frame in recording]
        for _ in range(3):
            self.say(frames)
        self.assertEqual((self.state(), self.lives()), (before, lives))
        # One comes back to others who are known, amid all that was ever said.
        comer = self.trackers.members[0]
        comer.kill()
        comer.start()

        def is_back():
            self.say(frames + [frame for _, frame in later])
            view = comer.cluster_view()
            return view and view["isServing"] and view["master"] == before[0]
        wait_until(is_back, 40, self.trackers.views)
        self.assertEqual(self.trackers.wait_until_serving().number, before[0])
        self.trackers.wait_until_equal()
        self.assertEqual(self.state(), before)
        self.assertEqual(len(self.lives()), len(self.trackers.members))
        for member, then in zip(self.trackers.members[1:], memory[1:]):
            self.assertLess(member.memory() - then, self.MOST_MEMORY)
        self.go_on(lambda: self.say(frames))

    def check_strangers(self):
        """A tracker of another cluster on the same bus: each side counts the other's frames, and lives alone."""
        before = self.state()
        key = self.trackers.directory / "stranger.key"
        key.write_text(os.urandom(32).hex())
        key.chmod(0o600)
        stranger = cluster.Member(
            self.trackers, 9, self.trackers.host("stranger"),
            ["--id", 9, "--cluster-key-file", key, "--udp", f"0.0.0.0:{PORT}", "--entry", "any",
             "--console", f"127.0.0.1:{cluster.CONSOLE}"])
        then = [view["bus"]["rejected"] for view in self.views()]
        stranger.start()
        wait_until(lambda: all(view["bus"]["rejected"] >= count + 3 for view, count in zip(self.views(), then)), 40,
                   self.trackers.views)
        wait_until(lambda: (stranger.cluster_view() or {}).get("isServing"), 20, stranger.cluster_view)
        view = stranger.cluster_view()
        self.assertEqual(([each["id"] for each in view["trackers"]], view["master"]), ([9], 9))
        self.assertGreater(view["bus"]["rejected"], 0)
        self.assertEqual(self.state(), before)
        self.assertEqual(len(self.lives()), len(self.trackers.members))
        stranger.stop()
        self.rejected = self.settled_count()

    def bother_clients_ports(self):
        """Junk, and frames of the bus, to the ports and the group where clients knock."""
        before, draw = self.state(), random.Random(2)
        places = [(member.host.ipv4, PORT) for member in self.trackers.members]
        if self.trackers.entry == "group":
            places.append((cluster.GROUP, PORT))
        with self.trackers.probe.entered():
            clients = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with clients:
            own = socket.inet_aton(self.trackers.probe.ipv4)
            clients.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, own)
            for _ in range(300):
                for place in places:
                    clients.sendto(draw.choice([flood.junk, flood.forged])(draw), place)
            for place in places:
                clients.sendto(MAGIC + draw.randbytes(100), place)
                clients.sendto(draw.randbytes(60_000), place)
        for member in self.trackers.members:
            client = self.trackers.client(member)
            self.assertEqual(client.scrape(bytes(20)), [bep15.Scraped(0, 0, 0)])
        self.assertEqual(self.state(), before)

    # What becomes of it

    def views(self):
        return [member.cluster_view() for member in self.trackers.members]

    def state(self):
        """Master, epoch, and what all hold."""
        self.trackers.wait_until_equal()
        views = self.views()
        epochs = {tuple(view["epoch"].values()) for view in views}
        masters = {view["master"] for view in views}
        self.assertEqual((len(masters), len(epochs)), (1, 1), self.trackers.views())
        return masters.pop(), epochs.pop(), self.trackers.digests()

    def lives(self):
        """The trackers that are known to each other and not down."""
        return {each["incarnation"] for view in self.views() for each in view["trackers"] if each["role"] != "down"}

    def count_rejected(self):
        return sum(view["bus"]["rejected"] for view in self.views())

    def settled_count(self):
        """Once nothing more comes."""
        counts = [self.count_rejected()]

        def rests():
            counts.append(self.count_rejected())
            return len(counts) > 6 and len(set(counts[-6:])) == 1
        wait_until(rests, 30, lambda: counts)
        return counts[-1]

    def expect_rejected(self, least, most, kind):
        """Waits until so many more were counted by all trackers together, in the API and in the metrics."""
        drops = self.trackers.drops() - self.drops
        self.drops += drops
        least = max(least - drops, 0)
        wait_until(lambda: self.count_rejected() - self.rejected >= least, 20,
                   lambda: f"{kind}: {self.count_rejected() - self.rejected} rejected of {least} to {most}")
        self.assertLessEqual(self.count_rejected() - self.rejected, most, kind)
        self.rejected = self.count_rejected()
        self.assertEqual(sum(member.metric("swarmkeeper_bus_rejected_total") for member in self.trackers.members),
                         self.rejected)

    def go_on(self, harm):
        """Clients are answered meanwhile."""
        before, self.is_quiet = self.peers.answers, False
        self.peers.announce(self.client, 0.5)
        harm()
        self.peers.announce(self.client, 0.5)
        self.peers.announce(self.client, 60, until=lambda: self.peers.answers > before + 50)
        self.is_quiet = True
        self.peers.settle(self.client)
        self.assertGreater(self.peers.answers, before + 50)
        self.assertEqual(self.peers.refusals, 0)
        self.trackers.wait_until_equal()

    def count_lines(self, member):
        return member.log.count("\n")

    def test_over_a_broker(self):
        with cluster.Cluster(brokers.RabbitMQ, flags=PATIENT) as trackers, BrokerEar(trackers) as ear, \
                trackers.crowd(trackers.members[0], swarms=10, peers_each=50, rate=200) as peers:
            self.annoy(trackers, ear, peers)

    def test_over_multicast(self):
        with cluster.Cluster("multicast", "group", flags=PATIENT) as trackers, GroupEar(trackers) as ear, \
                trackers.crowd(trackers.members[0], swarms=10, peers_each=50, rate=200) as peers:
            self.annoy(trackers, ear, peers)


if __name__ == "__main__":
    unittest.main()
