"""`tracker torrent share`: one command that makes a torrent, publishes it, and seeds."""

import os
import random
import signal
import time

from peers import PeerTest, events_in
from serving import free_port, require_tracker, wait_until

setUpModule = require_tracker

FAILED, USAGE, UNAVAILABLE, SYSTEM = 1, 2, 69, 74
KIB = 1 << 10


class Sharing(PeerTest):

    def share(self, *arguments):
        """Starts it and waits until it has looked at what it shares; `events` gives all that it has told."""
        program = self.program("torrent", "share", *arguments, "--listen", f"127.0.0.1:{free_port()}", "--json")
        program.events = lambda: events_in(program.words)

        def is_ready():
            self.assert_runs(program)
            return self.told(program, "checked")
        wait_until(is_ready, 20, lambda: f"it seeds:\n{program.words}")
        return program

    @staticmethod
    def told(program, name):
        return [event for event in program.events() if event["event"] == name]

    def download(self, source, *flags):
        """Has it all fetched by a new downloader."""
        folder = self.folder(f"downloader-{len(self.programs)}")
        program = self.program("get", source, "--path", folder, "--listen", f"127.0.0.1:{free_port()}", *flags)
        status = program.wait(60)
        self.assertEqual(status, 0, f"the downloader ended with {status}:\n{program.words}")
        return folder

    def test_a_file_is_made_a_torrent_published_and_seeded(self):
        tracker = self.serve()
        url, console = f"udp://127.0.0.1:{tracker.place.udp}", f"127.0.0.1:{tracker.place.console}"
        data = random.Random(self.id()).randbytes(700 * KIB)
        source = self.folder("mine") / "data.bin"
        source.write_bytes(data)
        file = self.directory / "data.torrent"
        seeder = self.share(source, "--announce", url, "--publish", console, "--output", file, "--piece-length", "64K")
        created, published = seeder.events()[:2]
        self.assertEqual((created["event"], created["file"], created["pieces"], created["totalBytes"]),
                         ("created", str(file), 11, len(data)))
        self.assertEqual((published["event"], published["infoHash"], published["isNew"]),
                         ("published", created["infoHash"], True))
        self.assertEqual(tracker.get(f"/api/v1/torrents/{created['infoHash']}/file"), file.read_bytes())
        checked, = self.told(seeder, "checked")
        self.assertEqual((checked["pieces"], checked["of"]), (11, 11))
        wait_until(lambda: self.told(seeder, "trackerAnswered"), 20, "the tracker knows of the seeder")
        for link in (published["magnet"], file):
            self.assertEqual((self.download(link) / "data.bin").read_bytes(), data)
        self.assertEqual(source.read_bytes(), data)
        seeder.signal(signal.SIGINT)
        self.assertEqual(seeder.wait(20), 0, seeder.words)

        def counts():
            swarm, = self.client(tracker).scrape(bytes.fromhex(created["infoHash"]))
            return swarm.seeders, swarm.leechers
        wait_until(lambda: counts() == (0, 0), 20, lambda: f"the tracker knows that it has gone: {counts()}")

    def test_what_is_shared_stays_where_it_is_under_whatever_name(self):
        tracker = self.serve()
        url = f"udp://127.0.0.1:{tracker.place.udp}"
        content = {name: random.Random(name).randbytes(size) for name, size in
                   (("a.bin", 100_000), ("inner/b.bin", 50_000), ("inner/empty", 0), ("deep/er/c", 70_000))}
        here, there = self.folder("here"), self.folder("there")
        (there / "tree" / "inner").mkdir(parents=True)
        (there / "tree" / "deep" / "er").mkdir(parents=True)
        (here / "a.bin").write_bytes(content["a.bin"])
        for name in ("inner/b.bin", "inner/empty", "deep/er/c"):
            (there / "tree" / name).write_bytes(content[name])
        (here / "way").symlink_to(there / "tree")
        for paths, name, expected in [
                ([here / "a.bin"], "other name.dat", {"": "a.bin"}),
                ([there / "tree"], "renamed", {name: name for name in content if name != "a.bin"}),
                ([here / "way"], None, {name: name for name in content if name != "a.bin"}),
                ([here / "a.bin", there / "tree"], "both",
                 {"a.bin": "a.bin", **{f"tree/{name}": name for name in content if name != "a.bin"}})]:
            with self.subTest(name=name, paths=len(paths)):
                file = self.directory / f"{name}.torrent"
                seeder = self.share(*paths, *(["--name", name] if name else []), "--output", file, "--announce", url,
                                    "--piece-length", "16K")
                checked, = self.told(seeder, "checked")
                self.assertEqual(checked["pieces"], checked["of"])
                found = self.download(file) / (name or "tree")
                for path, source in expected.items():
                    self.assertEqual((found / path).read_bytes() if path else found.read_bytes(), content[source])
                seeder.signal(signal.SIGINT)
                self.assertEqual(seeder.wait(20), 0, seeder.words)

    def test_what_has_not_been_written_since_is_not_hashed_again(self):
        """And what has been, is: of a file that is cut off meanwhile nothing is claimed."""
        source = self.folder("mine") / "old.bin"
        source.write_bytes(bytes(300_000))
        old = time.time() - 60
        os.utime(source, (old, old))
        file = self.directory / "old.torrent"
        seeder = self.share(source, "--output", file, "--no-tracker", "--piece-length", "16K")
        seeder.signal(signal.SIGINT)
        self.assertEqual(seeder.wait(20), 0)
        # `seed` goes on with what was noted, and finds out what has changed.
        source.write_bytes(bytes(200_000) + b"x" * 100_000)
        again = self.program("seed", file, "--path", source.parent, "--no-tracker", "--json", "--listen", "127.0.0.1:0")
        again.events = lambda: events_in(again.words)
        wait_until(lambda: self.told(again, "checked"), 20, lambda: f"it has looked:\n{again.words}")
        checked, = self.told(again, "checked")
        self.assertEqual((checked["pieces"], checked["of"]), (200_000 // 16_384, 19))

    def test_what_cannot_be_shared_is_told(self):
        source = self.folder("mine") / "data.bin"
        source.write_bytes(b"data" * 10_000)
        file = self.directory / "data.torrent"
        missing = self.directory / "missing"
        nobody = f"127.0.0.1:{free_port()}"
        for code, arguments, word in [
                (USAGE, [source, "--token-file", source], "--publish"),
                (USAGE, [source, "--new"], "--publish"),
                (USAGE, [source, "--publish", "a:b:c"], "a:b:c"),
                (SYSTEM, [source, "--publish", nobody, "--token-file", missing], str(missing)),
                (SYSTEM, [missing], str(missing)),
                (UNAVAILABLE, [source, "--publish", nobody], nobody),
                (FAILED, [source], "--force")]:
            with self.subTest(word=word):
                program = self.run_program("torrent", "share", *arguments, "--output", file, "--no-tracker", "--listen",
                                           "127.0.0.1:0")
                self.assertEqual(program.status, code, program.words)
                self.assertIn(word, program.words)
                # A torrent that was made stays, though nobody took it.
                self.assertEqual(file.exists(), code in (UNAVAILABLE, FAILED))

    def test_a_seeder_that_has_nothing_says_so(self):
        source = self.folder("mine") / "data.bin"
        source.write_bytes(b"data" * 10_000)
        file = self.directory / "data.torrent"
        self.run_program("torrent", "create", source, "--output", file)
        empty = self.folder("empty")
        program = self.run_program("seed", file, "--path", empty, "--no-tracker", "--listen", "127.0.0.1:0")
        self.assertEqual(program.status, FAILED, program.words)
        self.assertIn(str(empty), program.words)
