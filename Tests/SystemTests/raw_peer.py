"""A BitTorrent peer that does exactly what a test tells it to, right or wrong (BEP 3, 6, 9, 10).

`Wire` is a connection: raw bytes, handshakes and messages, one call each. `Seeder` listens in threads of its own, gives
what it is asked for and writes down what it hears; tests that want it to misbehave override one of its methods.
"""

import contextlib
import itertools
import secrets
import socket
import struct
import threading
import time

from metainfo import decode, encode
from serving import wait_until

PROTOCOL = b"\x13BitTorrent protocol"
BLOCK = 16_384

CHOKE, UNCHOKE, INTERESTED, NOT_INTERESTED, HAVE, BITFIELD, REQUEST, PIECE, CANCEL, PORT = range(10)
SUGGEST, HAVE_ALL, HAVE_NONE, REJECT, ALLOWED_FAST = range(13, 18)
EXTENDED = 20

FAST = 0x04
EXTENSIONS = 0x10_0000
"""Bits of the reserved bytes, read as one number."""

WORDS = {number: name for name, number in list(globals().items()) if name.isupper() and isinstance(number, int)
         and number <= EXTENDED and name not in ("FAST",)}


_strangers = (f"127.1.{number >> 8}.{number & 255}" for number in itertools.count(1))
"""Addresses on loopback: what one peer has done is not held against the next."""


class Closed(Exception):
    """The other side has closed the connection."""


class Silent(Exception):
    """Nothing came in time."""


def handshake(info_hash, peer_id, reserved=FAST | EXTENSIONS):
    return PROTOCOL + struct.pack("!Q", reserved) + info_hash + peer_id


def frame(number, payload=b""):
    return struct.pack("!IB", len(payload) + 1, number) + payload


def bitfield(have, count):
    """The payload of a bitfield in which the pieces `have` are set, of `count`."""
    bits = bytearray((count + 7) // 8)
    for piece in have:
        bits[piece // 8] |= 0x80 >> piece % 8
    return bytes(bits)


def new_id(prefix=b"-RP0001-"):
    return prefix + secrets.token_bytes(20 - len(prefix))


class Wire:
    """One connection to a peer. `seen` has all messages that came, as (number, payload)."""

    def __init__(self, connection, peer_id=None):
        self.socket, self.peer_id = connection, peer_id or new_id()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer, self.seen, self.theirs, self.is_closed = b"", [], None, False
        self.extensions = {}
        """The numbers that the other side has given to extensions, by name."""
        self._sending = threading.Lock()

    @classmethod
    def dial(cls, port, host="127.0.0.1", source=None, within=20, **options):
        """Connects from `source`, an address of this host; by default from one that nobody has used yet."""
        source = source or next(_strangers)

        def connect():
            with contextlib.suppress(ConnectionRefusedError):
                return socket.create_connection((host, port), 10, (source, 0))
        return cls(wait_until(connect, within, f"port {port} takes connections"), **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    # What it says

    def raw(self, data):
        """Sends bytes as they are; the other side may have closed."""
        with self._sending:
            try:
                self.socket.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                self.is_closed = True

    def say(self, number, payload=b""):
        self.raw(frame(number, payload))

    def have(self, piece):
        self.say(HAVE, struct.pack("!I", piece))

    def request(self, piece, begin, length):
        self.say(REQUEST, struct.pack("!III", piece, begin, length))

    def give(self, piece, begin, data):
        self.say(PIECE, struct.pack("!II", piece, begin) + data)

    def extended(self, number, message, data=b""):
        self.say(EXTENDED, bytes([number]) + encode(message) + data)

    def say_extensions(self, numbers, **more):
        """An extension handshake: our own numbers by name, and other keys."""
        self.extended(0, {"m": numbers, **more})

    def greet(self, info_hash, reserved=FAST | EXTENSIONS, within=30):
        """Both handshakes; ours first."""
        self.raw(handshake(info_hash, self.peer_id, reserved))
        return self.hear_handshake(within)

    # What it hears

    def _read(self, count, deadline):
        while len(self._buffer) < count:
            rest = deadline - time.monotonic()
            if rest <= 0:
                raise Silent(f"{len(self._buffer)} of {count} bytes came")
            self.socket.settimeout(rest)
            try:
                part = self.socket.recv(1 << 20)
            except TimeoutError:
                continue
            except OSError:
                part = b""
            if not part:
                self.is_closed = True
                raise Closed(f"closed; heard {self.heard()}")
            self._buffer += part
        part, self._buffer = self._buffer[:count], self._buffer[count:]
        return part

    def hear_handshake(self, within=30):
        """Their handshake: (reserved bits, info hash, peer id)."""
        data = self._read(68, time.monotonic() + within)
        assert data[:20] == PROTOCOL, f"no handshake: {data}"
        self.theirs = int.from_bytes(data[20:28], "big"), data[28:48], data[48:]
        return self.theirs

    def hear(self, within=30):
        """The next message as (number, payload); None is a keep-alive."""
        deadline = time.monotonic() + within
        size = int.from_bytes(self._read(4, deadline), "big")
        assert size <= 1 << 20, f"a message of {size} bytes"
        if size == 0:
            return None
        data = self._read(size, deadline)
        message = data[0], data[1:]
        self.seen.append(message)
        if message[0] == EXTENDED and message[1][0] == 0:
            said, _ = decode(message[1][1:])
            self.extensions |= {name.decode(): number for name, number in said.get(b"m", {}).items()}
        return message

    def expect(self, number, within=30, where=lambda payload: True):
        """The payload of the next message of a kind; others are passed over, and are in `seen`."""
        deadline = time.monotonic() + within
        while True:
            try:
                message = self.hear(deadline - time.monotonic())
            except Silent:
                raise AssertionError(f"no {WORDS[number]} within {within} s; heard {self.heard()}") from None
            if message and message[0] == number and where(message[1]):
                return message[1]

    def block(self, within=30):
        """The next block that comes: (piece, begin, bytes)."""
        data = self.expect(PIECE, within)
        return *struct.unpack("!II", data[:8]), data[8:]

    def fetch(self, piece, begin, length, within=30):
        """Asks for a block, and returns its bytes."""
        self.request(piece, begin, length)
        head = struct.pack("!II", piece, begin)
        return self.expect(PIECE, within, lambda payload: payload[:8] == head)[8:]

    def listen(self, seconds):
        """Hears whatever comes in so many seconds, or until the connection is closed; returns it."""
        deadline, before = time.monotonic() + seconds, len(self.seen)
        with contextlib.suppress(Silent, Closed):
            while True:
                self.hear(deadline - time.monotonic())
        return self.seen[before:]

    def wait_closed(self, within=60):
        """Waits until the other side closes; what it says meanwhile is in `seen`."""
        deadline = time.monotonic() + within
        try:
            while not self.is_closed:
                self.hear(deadline - time.monotonic())
        except Closed:
            return
        except Silent:
            raise AssertionError(f"not closed within {within} s; heard {self.heard()}") from None

    def heard(self):
        return [f"{WORDS.get(number, number)}({len(payload)})" for number, payload in self.seen[-40:]]


def ready_to_take(wire, torrent, reserved=FAST | EXTENSIONS, within=60):
    """Greets a seeder and waits until it unchokes us."""
    wire.greet(torrent.info_hash, reserved)
    if reserved & FAST:
        wire.say(HAVE_NONE)
    wire.say(INTERESTED)
    wire.expect(UNCHOKE, within)
    return wire


class Seeder:
    """Listens on an address of its own and gives a torrent to all who ask.

    `requests`, `cancels` hold (piece, begin, length) in the order in which they came, over all connections; `wires`
    the connections. It works in threads, whose failures the test is told of at the end of the `with`.
    """

    reserved = FAST | EXTENSIONS

    def __init__(self, torrent, host="127.0.0.2", peer_id=None, port=0):
        self.torrent, self.peer_id = torrent, peer_id or new_id()
        self._listener = socket.create_server((host, port))
        self.address = self._listener.getsockname()[:2]
        self.wires, self.requests, self.cancels, self.rejected, self._failures = [], [], [], [], []
        self.count = len(torrent.hashes)

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, kind, *_):
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for wire in self.wires:
            wire.close()
        if self._failures and kind is None:
            raise self._failures[0]

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                wire = Wire(connection, self.peer_id)
                self.wires.append(wire)
                threading.Thread(target=self._serve, args=(wire,), daemon=True).start()

    def _serve(self, wire):
        try:
            self.serve(wire)
        except (Closed, Silent, OSError):
            wire.is_closed = True
        except Exception as failure:
            self._failures.append(failure)

    # What a test may want otherwise

    def serve(self, wire):
        """A whole connection, from the handshake on."""
        wire.hear_handshake()
        wire.raw(handshake(self.torrent.info_hash, self.peer_id, self.reserved))
        self.introduce(wire)
        while True:
            message = wire.hear(3600)
            if message:
                self.heard(wire, *message)

    def introduce(self, wire):
        """What it says after the handshake: that it has all, and that everybody may ask."""
        if self.reserved & FAST:
            wire.say(HAVE_ALL)
        else:
            wire.say(BITFIELD, bitfield(range(self.count), self.count))
        wire.say(UNCHOKE)

    def heard(self, wire, number, payload):
        if number == REQUEST:
            block = struct.unpack("!III", payload)
            self.requests.append(block)
            self.requested(wire, *block)
        elif number == CANCEL:
            self.cancels.append(struct.unpack("!III", payload))
        elif number == REJECT:
            self.rejected.append(struct.unpack("!III", payload))

    def requested(self, wire, piece, begin, length):
        wire.give(piece, begin, self.data(piece, begin, length))

    def data(self, piece, begin, length):
        return self.torrent.piece(piece)[begin:begin + length]


class Metadata(Seeder):
    """Gives the info dictionary as well (BEP 9)."""

    number = 5

    def introduce(self, wire):
        wire.say_extensions({"ut_metadata": self.number}, metadata_size=self.size())
        super().introduce(wire)

    def size(self):
        return len(self.torrent.info)

    def heard(self, wire, number, payload):
        if number == EXTENDED and payload[0] == self.number:
            asked, _ = decode(payload[1:])
            if asked[b"msg_type"] == 0:
                self.asked_for_metadata(wire, asked[b"piece"])
        super().heard(wire, number, payload)

    def asked_for_metadata(self, wire, part):
        wire.extended(wire.extensions["ut_metadata"], {"msg_type": 1, "piece": part, "total_size": self.size()},
                      self.metadata(part))

    def metadata(self, part):
        return self.torrent.info[part * BLOCK:(part + 1) * BLOCK]
