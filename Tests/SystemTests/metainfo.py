"""Bencode, and .torrent files made with it (BEP 3)."""

import hashlib
import random

PIECE_LENGTH = 65_536


def encode(value):
    match value:
        case int():
            return b"i%de" % value
        case bytes():
            return b"%d:%b" % (len(value), value)
        case str():
            return encode(value.encode())
        case list():
            return b"l%be" % b"".join(map(encode, value))
        case dict():
            pairs = sorted((key.encode(), item) for key, item in value.items())
            return b"d%be" % b"".join(encode(key) + encode(item) for key, item in pairs)
    raise TypeError(f"{type(value).__name__} has no bencoding")


class Torrent:
    """One file of random bytes that a seed fixes, so its info hash is fixed too.

    It is private (BEP 27): a second reason, beside their own settings, for clients to ask
    the tracker alone for peers.
    """

    def __init__(self, seed, size, name=None):
        self.name = name or f"random-{seed}.bin"
        self.payload = random.Random(seed).randbytes(size)
        pieces = (self.payload[at:at + PIECE_LENGTH] for at in range(0, size, PIECE_LENGTH))
        info = {
            "length": size,
            "name": self.name,
            "piece length": PIECE_LENGTH,
            "pieces": b"".join(hashlib.sha1(piece).digest() for piece in pieces),
            "private": 1,
        }
        self.info_hash = hashlib.sha1(encode(info)).digest()
        self._info = info
        self.sha256 = hashlib.sha256(self.payload).hexdigest()

    def file(self, announce_url, *others):
        """The bytes of a .torrent file that names one tracker, or several in one tier (BEP 12).

        The info hash is the same for all.
        """
        tier = {"announce-list": [[announce_url, *others]]} if others else {}
        return encode({"announce": announce_url, **tier, "info": self._info})
