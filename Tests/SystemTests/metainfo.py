"""Bencode, and .torrent files made with it (BEP 3)."""

import hashlib
import os
import pathlib
import random
import urllib.parse

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
            pairs = sorted((key if isinstance(key, bytes) else key.encode(), item) for key, item in value.items())
            return b"d%be" % b"".join(encode(key) + encode(item) for key, item in pairs)
    raise TypeError(f"{type(value).__name__} has no bencoding")


class Torrent:
    """Random bytes that a seed fixes, in one file or in several; so its info hash is fixed too.

    It is private (BEP 27) unless told otherwise: a second reason, beside their own settings, for clients to ask
    the tracker alone for peers. `files` maps the path of each file, as a tuple of names, to its length in bytes.
    """

    def __init__(self, seed, size=None, name=None, files=None, piece_length=PIECE_LENGTH, is_private=True, more=None):
        self.files = files
        size = sum(files.values()) if files else size
        self.name = name or (f"random-{seed}" if files else f"random-{seed}.bin")
        self.piece_length = piece_length
        self.payload = random.Random(seed).randbytes(size)
        self.hashes = [hashlib.sha1(self.piece(at // piece_length)).digest() for at in range(0, size, piece_length)]
        parts = {"files": [{"length": length, "path": list(path)} for path, length in files.items()]} if files \
            else {"length": size}
        info = {
            **parts,
            "name": self.name,
            "piece length": piece_length,
            "pieces": b"".join(self.hashes),
            **({"private": 1} if is_private else {}),
            **(more or {}),
        }
        self.info_hash = hashlib.sha1(encode(info)).digest()
        self._info = info
        self.sha256 = hashlib.sha256(self.payload).hexdigest()

    @property
    def info(self):
        """The bytes of the info dictionary, which the info hash is of."""
        return encode(self._info)

    def piece(self, index):
        return self.payload[index * self.piece_length:(index + 1) * self.piece_length]

    def file(self, announce_url, *others, **more):
        """The bytes of a .torrent file that names one tracker, or several in one tier (BEP 12).

        The info hash is the same for all; `more` goes beside it, as `url-list` does.
        """
        tier = {"announce-list": [[announce_url, *others]]} if others else {}
        announce = {"announce": announce_url} if announce_url else {}
        return encode({**announce, **tier, **more, "info": self._info})

    def magnet(self, *announce_urls):
        """A magnet link (BEP 9) that names these trackers."""
        trackers = "".join(f"&tr={urllib.parse.quote(url, safe='')}" for url in announce_urls)
        return f"magnet:?xt=urn:btih:{self.info_hash.hex()}{trackers}"

    def paths(self, directory):
        """Where its files lie in a client's directory, in the torrent's order, each with its length."""
        top = pathlib.Path(directory) / self.name
        if not self.files:
            return [(top, len(self.payload))]
        return [(top.joinpath(*path), length) for path, length in self.files.items()]

    def write(self, directory):
        """Puts the files into a client's directory."""
        at = 0
        for path, length in self.paths(directory):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.payload[at:at + length])
            at += length

    def sha256_in(self, directory, has_empty=True):
        """The digest of what lies in a client's directory, or the name of what is missing or of another length.

        Where `has_empty` is false, files without bytes may be missing.
        """
        digest = hashlib.sha256()
        for path, length in self.paths(directory):
            if length == 0 and not has_empty:
                continue
            if not path.is_file() or path.stat().st_size != length:
                return f"{path} is not there, or has not {length} bytes"
            with open(path, "rb") as file:
                while part := file.read(1 << 20):
                    digest.update(part)
        return digest.hexdigest()


class BigTorrent(Torrent):
    """One file of many gigabytes, which is on the disk only: made once, and linked for each seeder.

    Each piece is a window of some random bytes, further on than that of the piece before: so much is soon made, and no
    two blocks are alike.
    """

    def __init__(self, seed, size, path, piece_length=4 << 20):
        self.files, self.name, self.piece_length, self._path, self._size = None, path.name, piece_length, path, size
        source, digest, self.hashes = random.Random(seed).randbytes(2 * piece_length), hashlib.sha256(), []
        with open(path, "wb") as file:
            for at in range(0, size, piece_length):
                start = at // piece_length * 4_097 % piece_length
                piece = source[start:start + min(piece_length, size - at)]
                file.write(piece)
                digest.update(piece)
                self.hashes.append(hashlib.sha1(piece).digest())
        self._info = {"length": size, "name": self.name, "piece length": piece_length,
                      "pieces": b"".join(self.hashes), "private": 1}
        self.info_hash = hashlib.sha1(encode(self._info)).digest()
        self.sha256 = digest.hexdigest()

    def paths(self, directory):
        return [(pathlib.Path(directory) / self.name, self._size)]

    def write(self, directory):
        os.link(self._path, pathlib.Path(directory) / self.name)


class Hybrid(Torrent):
    """A torrent of versions 1 and 2 at once (BEP 52), made by libtorrent, with its pad files (BEP 47)."""

    def __init__(self, seed, directory, files, piece_length=PIECE_LENGTH):
        import libtorrent  # Debian's own Python has it.
        super().__init__(seed, files=files, piece_length=piece_length)
        self.write(directory)
        storage = libtorrent.file_storage()
        libtorrent.add_files(storage, str(pathlib.Path(directory) / self.name))
        maker = libtorrent.create_torrent(storage, piece_length)
        libtorrent.set_piece_hashes(maker, str(directory))
        made = maker.generate()
        self._info = made[b"info"]
        self._encoded = libtorrent.bencode(made[b"info"])
        self._layers = made[b"piece layers"]
        self.info_hash = hashlib.sha1(self._encoded).digest()
        self._libtorrent = libtorrent

    @property
    def info(self):
        return self._encoded

    def file(self, announce_url, *others, **more):
        return self._libtorrent.bencode({
            b"announce": announce_url.encode(), b"info": self._info, b"piece layers": self._layers})


def decode(data):
    """The first value of some bytes, and what follows it; keys and strings are bytes."""
    if data[:1] == b"i":
        end = data.index(b"e")
        return int(data[1:end]), data[end + 1:]
    if data[:1] in (b"l", b"d"):
        kind, data, values = data[:1], data[1:], []
        while data[:1] != b"e":
            value, data = decode(data)
            values.append(value)
        return (values if kind == b"l" else dict(zip(values[::2], values[1::2]))), data[1:]
    head, _, rest = data.partition(b":")
    return rest[:int(head)], rest[int(head):]
