"""Malformed torrents, magnet links and web seeds: a clear answer, no trap, nothing outside the chosen directory."""

import base64
import os
import threading
import unittest

import raw_peer
import web_seeds
from metainfo import Torrent, encode
from peers import PeerTest
from raw_peer import Metadata, Seeder
from serving import require_tracker, wait_until

setUpModule = require_tracker

MIB = 1 << 20
WRONG = 1
"""The exit code where the torrent or the data is wrong."""


def metainfo(**changes):
    """A small torrent of one file with changes; None takes a key away."""
    info = {"name": "file", "length": 40_000, "piece length": 32_768, "pieces": bytes(40)}
    info |= {key.replace("_", " "): value for key, value in changes.items()}
    return encode({"info": {key: value for key, value in info.items() if value is not None}})


def files(*paths, lengths=None, **changes):
    """A torrent of many files, each of ten bytes."""
    lengths = lengths or [10] * len(paths)
    entries = [{"length": length, "path": list(path)} for path, length in zip(paths, lengths)]
    return metainfo(length=None, files=entries, name="top", pieces=bytes(20), **changes)


MALFORMED = {
    "nothing": b"",
    "no bencoding": b"<html>not found</html>",
    "cut short": metainfo()[:-10],
    "a list": b"le",
    "no info": encode({"announce": "udp://a:1"}),
    "info is a number": b"d4:infoi5ee",
    "deep nesting": b"d4:info" + b"l" * 100_000 + b"e" * 100_000 + b"e",
    "a string of a length that overflows": b"d99999999999999999999:aaae",
    "a string of a negative length": b"d-5:aaae",
    "a string that claims gigabytes": b"d4:info9999999999:a",
    "a number that overflows": metainfo().replace(b"i40000e", b"i99999999999999999999999e"),
    "no name": metainfo(name=None),
    "a name of no bytes": metainfo(name=""),
    "a negative length": metainfo(length=-1),
    "a huge length": metainfo(length=(1 << 63) - 1),
    "a length of 2^62 in many files": files(["a"], ["b"], ["c"], lengths=[1 << 62] * 3),
    "a negative length among files": files(["a"], ["b"], lengths=[20, -10]),
    "no length": metainfo(length=None),
    "length and files": encode({"info": {"name": "x", "length": 10, "piece length": 32_768, "pieces": bytes(20),
                                         "files": [{"length": 10, "path": ["a"]}]}}),
    "no files": metainfo(length=None, files=[]),
    "files that are no list": metainfo(length=None, files=5),
    "no path": metainfo(length=None, files=[{"length": 40_000}]),
    "an empty path": files([]),
    "a path that is no list": metainfo(length=None, files=[{"length": 40_000, "path": "a"}]),
    "no piece length": metainfo(piece_length=None),
    "a piece length of 0": metainfo(piece_length=0),
    "a negative piece length": metainfo(piece_length=-32_768),
    "a huge piece length": metainfo(piece_length=1 << 62, pieces=bytes(20)),
    "no pieces": metainfo(pieces=None),
    "too few pieces": metainfo(pieces=bytes(20)),
    "too many pieces": metainfo(pieces=bytes(60)),
    "a piece of 19 bytes": metainfo(pieces=bytes(39)),
    "the same file twice": files(["a"], ["b"], ["a"]),
    "a file that is a directory, too": files(["a"], ["a", "b"]),
}
"""What is to be refused."""

HOSTILE = {
    "up": ["..", "escaped"],
    "far up": [".."] * 12 + ["tmp", "escaped"],
    "up in the middle": ["a", "..", "..", "escaped"],
    "a slash in a name": ["a/../../escaped"],
    "an absolute name": ["/tmp/escaped"],
    "an absolute directory": ["/", "tmp", "escaped"],
    "a dot": [".", "escaped"],
    "an empty part": ["", "escaped"],
    "a zero byte": ["escaped\0.txt"],
    "a backslash": ["..\\..\\escaped"],
    "a line break": ["escaped\n\x1b[2J"],
    "a very long name": ["escaped" + "x" * 5_000],
    "a very deep path": ["d"] * 3_000 + ["escaped"],
    "no UTF-8": [b"escaped\xff\xfe"],
}
"""Paths that are made safe or refused, never taken at their word."""


class MalformedTorrents(PeerTest):

    def test_malformed_torrents_are_refused_with_a_reason(self):
        for name, data in MALFORMED.items():
            for command in (["get"], ["seed"]):
                with self.subTest(name, command=command):
                    file = self.directory / "malformed.torrent"
                    file.write_bytes(data)
                    folder = self.folder("untouched")
                    program = self.run_program(*command, file, "--path", folder, "--no-tracker", "--listen",
                                               "127.0.0.1:0")
                    self.assert_refuses(program, folder)

    def test_malformed_torrents_are_not_verified(self):
        for name, data in MALFORMED.items():
            with self.subTest(name):
                file, folder = self.directory / "malformed.torrent", self.folder("untouched")
                file.write_bytes(data)
                self.assert_refuses(self.run_program("torrent", "verify", file, folder), folder)

    def assert_refuses(self, program, folder):
        self.assertIn(program.status, (WRONG, 64, 65), program.words)
        self.assertTrue(program.words.strip(), "it says why")
        self.assertNotIn("Fatal error", program.words)
        self.assertEqual(list(folder.iterdir()), [])

    def test_hostile_paths_write_nothing_outside(self):
        """Each torrent is seeded by somebody who says that he has it."""
        for name, path in HOSTILE.items():
            with self.subTest(name):
                for torrent in (Torrent(name, files={("good",): 50_000, tuple(path): 50_000}, is_private=False),
                                Torrent(name, 50_000, name=path[-1] if len(path) < 3 else "/".join(path[:20]))):
                    self.assert_stays_inside(torrent)

    def test_hostile_names_of_the_whole_write_nothing_outside(self):
        for name in ("..", ".", "/", "/tmp/escaped", "../escaped", "a/b", "escaped\0", "..\\escaped", "~", "-rf"):
            with self.subTest(name):
                self.assert_stays_inside(Torrent(name, 50_000, name=name))
                self.assert_stays_inside(Torrent(name, name=name, files={("good",): 50_000, ("escaped",): 9}))

    def assert_stays_inside(self, torrent):
        number = len(self.programs)
        around = self.directory / f"around-{number}"
        inside = around / "deep" / "deeper" / "inside"
        inside.mkdir(parents=True)
        before = set(os.listdir("/tmp")) | set(os.listdir("/"))
        with Seeder(torrent) as seeder:
            program = self.get(torrent, [seeder], "--give-up-after", "20s", folder=inside)
            status = program.wait(30)
        self.assertNotIn(status, (132, 133, 134, 139, -4, -5, -6, -11), program.words)
        self.assertNotIn("Fatal error", program.words)
        outside = [path for path in around.rglob("*") if inside not in path.parents and path not in (
            inside, inside.parent, inside.parent.parent)]
        self.assertEqual(outside, [])
        new = (set(os.listdir("/tmp")) | set(os.listdir("/"))) - before
        self.assertEqual([name for name in new if "escaped" in name], [])
        for path in inside.rglob("*"):
            self.assertFalse(path.is_symlink())
            self.assertTrue(path.resolve().is_relative_to(inside.resolve()))
        self.assertTrue(status == 0 or program.words.strip(), "it says why")

    def test_a_link_in_the_directory_is_not_followed_out_of_it(self):
        """Somebody has put a link where a directory of the torrent is to be."""
        torrent = Torrent("link", files={("sub", "file"): 100_000}, is_private=False)
        outside, inside = self.folder("outside"), self.folder("inside")
        (inside / torrent.name).mkdir()
        (inside / torrent.name / "sub").symlink_to(outside)
        with Seeder(torrent) as seeder:
            program = self.get(torrent, [seeder], "--give-up-after", "10s", folder=inside)
            status = program.wait(30)
        self.assertEqual(list(outside.iterdir()), [])
        self.assertNotEqual(status, 0, program.words)
        self.assertTrue(program.words.strip(), "it says why")

    def test_paths_that_are_hostile_in_metadata(self):
        """By a magnet link the torrent comes from a stranger."""
        torrent = Torrent("magnet", files={("..", "..", "escaped"): 50_000, ("good",): 50_000}, is_private=False)
        inside = self.folder("a") / "b" / "c"
        inside.mkdir(parents=True)
        with Metadata(torrent) as seeder:
            program = self.get(torrent, [seeder], "--give-up-after", "20s", folder=inside, source=torrent.magnet())
            program.wait(30)
        escaped = [path for path in self.directory.rglob("escaped*") if inside not in path.parents]
        self.assertEqual(escaped, [])
        self.assertNotIn("Fatal error", program.words)

    def test_malformed_magnet_links_are_refused_with_a_reason(self):
        good = "0123456789abcdef0123456789abcdef01234567"
        for link in ("magnet:", "magnet:?", "magnet:?xt=", "magnet:?xt=urn:btih:", "magnet:?xt=urn:btih:xyz",
                     f"magnet:?xt=urn:btih:{good}0", f"magnet:?xt=urn:btih:{good[:-1]}g", f"magnet:?dn={good}",
                     "magnet:?xt=urn:sha1:ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", f"magnet:?xt=urn:btmh:1220{good}",
                     "http://example.org/x.torrent", good[:-1], "no-such-file.torrent"):
            with self.subTest(link):
                program = self.run_program("get", link, "--path", self.folder("untouched"), "--no-tracker")
                self.assertIn(program.status, (WRONG, 74), program.words)
                self.assertTrue(program.words.strip())
                self.assertNotIn("Fatal error", program.words)

    def test_all_forms_of_a_magnet_link_are_read(self):
        torrent = Torrent("forms", 50_000, is_private=False)
        small, base32 = torrent.info_hash.hex(), base64.b32encode(torrent.info_hash).decode()
        forms = (f"magnet:?xt=urn:btih:{small}", f"magnet:?xt=urn:btih:{small.upper()}", f"MAGNET:?xt=urn:btih:{small}",
                 f"magnet:?dn=x%20y&xt=urn:btih:{base32}&x.pe=127.0.0.1:9", f"magnet:?xt=urn:btih:{base32.lower()}",
                 f"magnet:?xt.1=urn:btih:{small}", small, small.upper())
        with Metadata(torrent) as seeder:
            for number, form in enumerate(forms):
                with self.subTest(form):
                    program = self.get(torrent, [seeder], source=form, folder=self.folder(f"form-{number}"))
                    self.assert_gets(program, torrent)


class LyingWebSeeds(PeerTest):
    """A web seed lies, a peer has it all in the end: a lie costs time, no more."""

    def setUp(self):
        self.torrent = Torrent(self.id(), 40 * 65_536 + 5_000, is_private=False)
        self.files = self.folder("web")
        self.torrent.write(self.files)

    def from_web(self, answer, *flags):
        seed = self.enterContext(web_seeds.WebSeed(self.files, answer))
        source = self.torrent_file(self.torrent, **{"url-list": [seed.url]})
        return seed, self.get(self.torrent, [], *flags, source=source)

    def test_an_honest_one_gives_all(self):
        seed, program = self.from_web(web_seeds.honest)
        self.assert_gets(program, self.torrent)
        self.assertTrue(seed.asked)

    def test_one_without_ranges(self):
        """It answers 200 with the whole file: that is used or given up, and never taken for a part."""
        seed, program = self.from_web(web_seeds.whole_file)
        wait_until(lambda: seed.asked, 30, "the web seed is asked")
        with Seeder(self.torrent, host="127.0.0.3") as honest:
            self.introduce(honest, program)
            self.assert_gets(program, self.torrent, 120)

    def introduce(self, seeder, program):
        """Has a seeder dial the downloader, which it does not know of otherwise."""
        wire = self.enterContext(raw_peer.Wire.dial(program.port, source=seeder.address[0]))

        def give():
            wire.greet(self.torrent.info_hash)
            wire.say(raw_peer.HAVE_ALL)
            wire.say(raw_peer.UNCHOKE)
            while True:
                message = wire.hear(3600)
                if message:
                    seeder.heard(wire, *message)

        def run():
            try:
                give()
            except (raw_peer.Closed, raw_peer.Silent, OSError):
                pass
        threading.Thread(target=run, daemon=True).start()


def lying(liar):
    def test(self):
        seed, program = self.from_web(liar)
        wait_until(lambda: seed.asked, 30, "the web seed is asked")
        if liar in (web_seeds.endless, web_seeds.huge_headers):
            wait_until(lambda: seed.sent, 30, "the web seed answers")
        with Seeder(self.torrent, host="127.0.0.3") as honest:
            self.introduce(honest, program)
            self.assert_gets(program, self.torrent, 180)
        self.assertLess(len(seed.asked), 1_000, "no storm of requests")
        self.assertLess(seed.sent, 256 * MIB)
    test.__doc__ = liar.__doc__
    return test


for _liar in web_seeds.LIARS:
    setattr(LyingWebSeeds, f"test_one_that_lies_{_liar.__name__}", lying(_liar))


if __name__ == "__main__":
    unittest.main()
