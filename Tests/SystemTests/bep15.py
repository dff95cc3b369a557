"""A UDP tracker client (BEP 15), small and without mercy: for tests of trackers.

`Client` does what a well-behaved client does. The functions beside it make and read the
raw datagrams, for tests that want to misbehave.
"""

import dataclasses
import enum
import ipaddress
import secrets
import socket
import struct
import time

MAGIC = 0x417_2710_1980
DEFAULT_NUM_WANT = -1


class Action(enum.IntEnum):
    CONNECT, ANNOUNCE, SCRAPE, ERROR = range(4)


class Event(enum.IntEnum):
    NONE, COMPLETED, STARTED, STOPPED = range(4)


class TrackerError(Exception):
    """The tracker answered with an error; the text is the tracker's."""


class Silence(Exception):
    """The tracker did not answer."""


@dataclasses.dataclass(frozen=True)
class Announced:
    """What an announce brings: the interval in seconds, counts, and peers as (address, port)."""
    interval: int
    leechers: int
    seeders: int
    peers: tuple


@dataclasses.dataclass(frozen=True)
class Scraped:
    """What a scrape says about one swarm, in the order of the wire."""
    seeders: int
    completed: int
    leechers: int


# Requests

def connect_request(transaction, magic=MAGIC):
    return struct.pack("!QII", magic, Action.CONNECT, transaction)


def announce_request(connection, transaction, info_hash, peer_id, port, *, left,
                     downloaded=0, uploaded=0, event=Event.NONE, ip=0, key=0,
                     num_want=DEFAULT_NUM_WANT):
    return struct.pack("!QII20s20sQQQIIIiH", connection, Action.ANNOUNCE, transaction, info_hash,
                       peer_id, downloaded, left, uploaded, event, ip, key, num_want, port)


def scrape_request(connection, transaction, *info_hashes):
    return struct.pack("!QII", connection, Action.SCRAPE, transaction) + b"".join(info_hashes)


# Replies

def body(reply, action, transaction):
    """What follows the header of a reply, once the header is the one expected."""
    assert len(reply) >= 8, f"a reply of {len(reply)} bytes: {reply.hex()}"
    got_action, got_transaction = struct.unpack_from("!II", reply)
    assert got_transaction == transaction, f"a reply to another request: {reply.hex()}"
    if got_action == Action.ERROR:
        raise TrackerError(reply[8:].decode(errors="replace"))
    assert got_action == action, f"wanted action {action}: {reply.hex()}"
    return reply[8:]


def connection_id(body):
    assert len(body) == 8, f"a connect reply of 8 + {len(body)} bytes"
    return int.from_bytes(body, "big")


def announced(body, family):
    interval, leechers, seeders = struct.unpack_from("!III", body)
    address_length = 4 if family == socket.AF_INET else 16
    compact, length = body[12:], address_length + 2
    assert len(compact) % length == 0, f"{len(compact)} bytes of peers, {length} bytes each"
    peers = tuple((str(ipaddress.ip_address(compact[at:at + address_length])),
                   int.from_bytes(compact[at + address_length:at + length], "big"))
                  for at in range(0, len(compact), length))
    return Announced(interval, leechers, seeders, peers)


def scraped(body):
    assert len(body) % 12 == 0, f"{len(body)} bytes of swarms, 12 bytes each"
    return [Scraped(*counts) for counts in struct.iter_unpack("!III", body)]


class Channel(socket.socket):
    """A UDP socket to a tracker, to several, or to a multicast group whose members answer from their own addresses."""

    def __init__(self, *addresses, port):
        super().__init__(socket.AF_INET6 if ":" in addresses[0] else socket.AF_INET, socket.SOCK_DGRAM)
        self._doors = [(address, port) for address in addresses]
        self._is_connected = len(addresses) == 1 and not ipaddress.ip_address(addresses[0]).is_multicast
        if self._is_connected:
            # So that replies from any other address or port are not ours.
            self.connect(self._doors[0])

    def ask(self, request, door=0):
        if self._is_connected:
            return self.send(request)
        return self.sendto(request, self._doors[door % len(self._doors)])


class Client:
    """Asks one tracker, a group, or several trackers one after the other. It opens a socket where it is made: see `Host.entered`."""

    LIFE_OF_A_CONNECTION = 60  # seconds a client may use a connection id

    def __init__(self, address, port=6969, timeout=2, tries=15):
        self._socket = Channel(*([address] if isinstance(address, str) else address), port=port)
        self._family = self._socket.family
        self._socket.settimeout(timeout)
        self._tries = tries
        self._connection, self._connected_at = None, 0
        self.peer_id = b"-SW0000-" + secrets.token_bytes(12)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def exchange(self, request):
        """Sends raw bytes, again if need be, and returns the reply; raises Silence if none comes.

        A late reply to an earlier request, known by its transaction id, is passed over.
        """
        for door in range(self._tries):
            try:
                self._socket.ask(request, door)
                while (reply := self._socket.recv(65_536))[4:8] != request[12:16]:
                    pass
                return reply
            except TimeoutError:
                continue
            except ConnectionRefusedError:  # Nobody listens, yet: do not ask at full speed.
                time.sleep(self._socket.gettimeout())
        raise Silence(f"no answer to {self._tries} × {request.hex()}")

    def _ask(self, request, action, transaction):
        return body(self.exchange(request), action, transaction)

    def connect(self):
        """A connection id, of at most a minute's age."""
        if self._connection is None or time.monotonic() > self._connected_at + self.LIFE_OF_A_CONNECTION:
            transaction = secrets.randbits(32)
            reply = self._ask(connect_request(transaction), Action.CONNECT, transaction)
            self._connection, self._connected_at = connection_id(reply), time.monotonic()
        return self._connection

    def announce(self, info_hash, port, *, left, **fields):
        transaction = secrets.randbits(32)
        request = announce_request(self.connect(), transaction, info_hash, self.peer_id, port,
                                   left=left, **fields)
        return announced(self._ask(request, Action.ANNOUNCE, transaction), self._family)

    def scrape(self, *info_hashes):
        transaction = secrets.randbits(32)
        request = scrape_request(self.connect(), transaction, *info_hashes)
        swarms = scraped(self._ask(request, Action.SCRAPE, transaction))
        assert len(swarms) == len(info_hashes), f"asked for {len(info_hashes)}, got {len(swarms)}"
        return swarms
