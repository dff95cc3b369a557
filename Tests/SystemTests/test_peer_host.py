"""`tracker peer`, the real program, asked over HTTP as its page asks: many transfers, restarts, torrents that are made and
published, and orders that make no sense."""

import http.client
import json
import os
import signal
import time
import unittest

import serving
from consoles import Console
from metainfo import Torrent, encode
from peers import PeerTest
from serving import require_tracker, wait_until

setUpModule = require_tracker

MIB = 1 << 20
USAGE, SYSTEM, CONFIGURATION = 2, 74, 78
"""Exit codes."""

SLOW = 256 << 10
"""Bytes a second, as a limit: a transfer lasts long enough for something to happen in it."""


class Host(Console):
    """A running `tracker peer`, asked as a program on this machine asks."""

    def __init__(self, program, folder, port, console, **options):
        super().__init__(console, **options)
        self.program, self.folder, self.peer_port = program, folder, port

    @property
    def address(self):
        return "127.0.0.1", self.peer_port

    def transfers(self):
        return {one["hash"]: one for one in self.get("transfers").json["transfers"]}

    def transfer(self, torrent):
        return self.get(f"transfers/{torrent.info_hash.hex()}").json

    def order(self, torrent, action, body=None):
        return self.ask("POST", f"transfers/{torrent.info_hash.hex()}/{action}", body)

    def creation(self, made):
        return next(one for one in self.get("creations").json["creations"] if one["id"] == made["id"])

    def state_of(self, torrent):
        return self.transfer(torrent)["state"]

    def wait_for(self, torrent, state, seconds=20):
        wait_until(lambda: self.state_of(torrent) == state, seconds, lambda: f"{state}: {self.transfer(torrent)}")
        return self.transfer(torrent)

    def stop(self, number=signal.SIGTERM):
        self.program.signal(number)
        assert self.program.wait(20) == 0, self.program.words


class PeerHostTest(PeerTest):

    def host(self, folder="peer", *flags, **options):
        """Starts one and waits until it answers."""
        folder = self.folder(folder)
        port, console = serving.free_port(), serving.free_port()
        program = self.program("peer", "--path", folder, "--console", f"127.0.0.1:{console}", "--listen",
                               f"127.0.0.1:{port}", *flags)
        host = Host(program, folder, port, console, **options)

        def answers():
            self.assert_runs(program)
            try:
                return host.get("").status in (200, 401)
            except OSError:
                return False
        wait_until(answers, 20, lambda: f"it answers: {program.words}")
        return host

    def again(self, host, *flags):
        """Starts one anew in the same folder."""
        return self.host(host.folder.name, *flags)

    def add(self, host, torrent, status=201, query="", announce_url=""):
        answer = host.ask("POST", f"transfers{query}", torrent.file(announce_url))
        self.assertEqual(answer.status, status, answer)
        return answer.json

    def assert_refused(self, answer, status, *words):
        self.assertEqual(answer.status, status, answer)
        for word in words:
            self.assertIn(word, answer.error)


class Transfers(PeerHostTest):

    def test_a_file_is_added_fetched_and_seeded_and_the_same_twice_is_one(self):
        torrent = Torrent(self.id(), 2 * MIB + 123)
        seeder, host = self.seed(torrent), self.host()
        self.assertEqual(self.add(host, torrent)["hash"], torrent.info_hash.hex())
        self.add(host, torrent, status=200)
        self.assertEqual(len(host.transfers()), 1)
        self.assertEqual(host.order(torrent, "peers", {"address": f"127.0.0.1:{seeder.port}"}).status, 200)
        whole = host.wait_for(torrent, "seeding", 40)
        self.assertEqual((whole["missing"], whole["progress"], whole["byteCount"]), (0, 1, 2 * MIB + 123))
        self.assertGreaterEqual(whole["received"], 2 * MIB)
        wait_until(lambda: host.transfer(torrent)["completedAt"], 10, "it notes when it had all")
        self.assertEqual(torrent.sha256_in(host.folder), torrent.sha256)
        downloader = self.get(torrent, [host])
        self.assert_gets(downloader, torrent)
        self.assertEqual(host.get(f"transfers/{whole['hash']}/file").content, torrent.file(""))

    def test_a_magnet_link_becomes_a_torrent_that_a_restart_keeps(self):
        torrent = Torrent(self.id(), MIB, is_private=False)
        seeder, host = self.seed(torrent), self.host()
        added = host.ask("POST", "transfers", {"magnet": torrent.magnet(), "directory": "from/magnets"})
        self.assertEqual(added.status, 201, added)
        self.assertIn(added.json["state"], ("metadata", "waitingForPeers"))
        path = f"transfers/{torrent.info_hash.hex()}"
        self.assert_refused(host.get(f"{path}/file"), 409, "magnet")
        self.assert_refused(host.ask("PATCH", path, {"files": [0]}), 409)
        host.order(torrent, "peers", {"address": f"127.0.0.1:{seeder.port}"})
        host.wait_for(torrent, "seeding", 40)
        self.assertEqual(torrent.sha256_in(host.folder / "from/magnets"), torrent.sha256)
        wait_until(lambda: host.get(f"{path}/file").status == 200, 10, "the file is known")
        self.assertIn(torrent.info, host.get(f"{path}/file").content)
        host.stop()
        seeder.kill()
        host = self.again(host)
        again = host.wait_for(torrent, "seeding")
        self.assertEqual((again["name"], again["directory"]), (torrent.name, "from/magnets"))

    def test_what_rests_stays_so_over_a_restart_and_goes_on_when_told(self):
        torrent = Torrent(self.id(), 4 * MIB)
        seeder, host = self.seed(torrent, "--max-up", SLOW), self.host()
        self.add(host, torrent, query="?paused=true")
        self.assertEqual(host.state_of(torrent), "paused")
        self.assert_refused(host.order(torrent, "announce"), 409, "resume")
        self.assertEqual(host.order(torrent, "resume").status, 200)
        host.order(torrent, "peers", {"address": f"127.0.0.1:{seeder.port}"})
        wait_until(lambda: host.transfer(torrent)["progress"] > 0.1, 40, "some of it has come")
        self.assertEqual(host.order(torrent, "pause").status, 200)
        before = host.wait_for(torrent, "paused")
        self.assertEqual(before["peers"], 0)
        host.stop(signal.SIGINT)
        host = self.again(host)
        wait_until(lambda: host.transfer(torrent)["progress"] >= before["progress"] > 0, 10,
                   lambda: f"what was there is known: {host.transfer(torrent)}")
        after = host.transfer(torrent)
        self.assertEqual((after["state"], after["missing"]), ("paused", before["missing"]))
        self.assertGreaterEqual(after["received"], before["received"])
        host.order(torrent, "resume")
        host.order(torrent, "peers", {"address": f"127.0.0.1:{seeder.port}"})
        wait_until(lambda: host.transfer(torrent)["progress"] > before["progress"], 40, "it goes on")

    def test_a_restart_reads_nothing_again_that_was_verified(self):
        """A byte is changed while nobody looks, and the file's time put back: only a full check would find it."""
        torrent = Torrent(self.id(), MIB)
        host = self.host()
        torrent.write(host.folder)
        self.add(host, torrent)
        host.wait_for(torrent, "seeding")
        host.stop()
        path, _ = next(iter(torrent.paths(host.folder)))
        times = os.stat(path)
        with open(path, "r+b") as file:
            file.seek(3)
            file.write(bytes([torrent.payload[3] ^ 1]))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        host = self.again(host)
        host.wait_for(torrent, "seeding")
        self.assertEqual(host.order(torrent, "recheck").status, 200)
        wait_until(lambda: host.transfer(torrent)["missing"] == torrent.piece_length, 20,
                   lambda: f"a piece is missing: {host.transfer(torrent)}")
        self.assertNotEqual(host.state_of(torrent), "seeding")

    def test_a_check_of_what_rests_lets_it_rest(self):
        torrent = Torrent(self.id(), MIB)
        host = self.host()
        torrent.write(host.folder)
        self.add(host, torrent, query="?paused=true")
        host.order(torrent, "recheck")
        wait_until(lambda: host.transfer(torrent)["missing"] == 0 and host.state_of(torrent) == "paused", 20,
                   lambda: f"checked, and at rest: {host.transfer(torrent)}")

    def test_kill_9_forgets_no_transfer(self):
        torrents = [Torrent(f"{self.id()} {number}", 100_000 + number) for number in range(5)]
        host = self.host()
        for torrent in torrents:
            self.add(host, torrent)
        host.program.kill()
        host = self.again(host)
        self.assertEqual(set(host.transfers()), {torrent.info_hash.hex() for torrent in torrents})

    def test_only_the_files_that_were_chosen_come(self):
        files = {("one",): 3 * 65_536, ("two",): 2 * 65_536, ("three",): 65_536}
        torrent = Torrent(self.id(), files=files)
        seeder, host = self.seed(torrent), self.host()
        self.add(host, torrent, query="?paused=true")
        path = f"transfers/{torrent.info_hash.hex()}"
        answer = host.ask("PATCH", path, {"files": [1], "maxDown": MIB, "maxPeers": 7, "ratio": 2.5})
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.json["limits"], {"maxDown": MIB, "maxUp": None, "maxPeers": 7, "ratio": 2.5})
        self.assertEqual([one["isWanted"] for one in answer.json["files"]], [False, True, False])
        host.stop()
        host = self.again(host)
        kept = host.transfer(torrent)
        self.assertEqual(kept["limits"], {"maxDown": MIB, "maxUp": None, "maxPeers": 7, "ratio": 2.5})
        self.assertEqual([one["isWanted"] for one in kept["files"]], [False, True, False])
        host.order(torrent, "resume")
        host.order(torrent, "peers", {"address": f"127.0.0.1:{seeder.port}"})
        host.wait_for(torrent, "seeding", 40)
        self.assertEqual((host.folder / torrent.name / "two").read_bytes(), torrent.payload[3 * 65_536:5 * 65_536])
        self.assertFalse((host.folder / torrent.name / "three").exists())
        answer = host.ask("PATCH", path, {"files": None, "ratio": None})
        self.assertTrue(all(one["isWanted"] for one in answer.json["files"]))
        wait_until(lambda: torrent.sha256_in(host.folder) == torrent.sha256, 40, "all of it comes")
        for wrong in ([3], [-1], [], ["0"], [0.5]):
            self.assert_refused(host.ask("PATCH", path, {"files": wrong}), 400)

    def test_removed_with_its_data_and_without(self):
        one, other = Torrent("one", MIB), Torrent("other", files={("a",): 65_536, ("b", "c"): 65_536})
        host = self.host()
        for torrent in (one, other):
            torrent.write(host.folder)
            self.add(host, torrent)
            host.wait_for(torrent, "seeding")
        (host.folder / other.name / "mine").write_text("not of the torrent")
        self.assertEqual(host.ask("DELETE", f"transfers/{one.info_hash.hex()}").status, 204)
        answer = host.ask("DELETE", f"transfers/{other.info_hash.hex()}?data=true")
        self.assertEqual((answer.status, answer.content), (204, b""))
        self.assertEqual(host.transfers(), {})
        wait_until(lambda: not (host.folder / other.name / "a").exists(), 10, "its files go")
        wait_until(lambda: not (host.folder / other.name / "b").exists(), 10, "its folders go")
        self.assertEqual((host.folder / other.name / "mine").read_text(), "not of the torrent")
        self.assertEqual(one.sha256_in(host.folder), one.sha256)
        self.assert_refused(host.ask("DELETE", f"transfers/{one.info_hash.hex()}"), 404)
        host.stop()
        self.assertEqual(self.again(host).transfers(), {})

    def test_a_ratio_that_is_reached_ends_it_and_counts_over_restarts(self):
        torrent = Torrent(self.id(), MIB)
        host = self.host()
        torrent.write(host.folder)
        self.add(host, torrent)
        host.wait_for(torrent, "seeding")
        self.assertEqual(host.ask("PATCH", f"transfers/{torrent.info_hash.hex()}", {"ratio": 2}).status, 200)
        self.assert_gets(self.get(torrent, [host], folder=self.folder("first")), torrent)
        host.stop()
        host = self.again(host)
        self.assertGreaterEqual(host.transfer(torrent)["sent"], MIB)
        host.wait_for(torrent, "seeding")
        self.assert_gets(self.get(torrent, [host], folder=self.folder("second")), torrent)
        at_rest = host.wait_for(torrent, "paused")
        self.assertIn("ratio", at_rest["problem"])
        self.assert_refused(host.order(torrent, "resume"), 409, "ratio")
        host.ask("PATCH", f"transfers/{torrent.info_hash.hex()}", {"ratio": None})
        self.assertEqual(host.order(torrent, "resume").status, 200)
        host.wait_for(torrent, "seeding")

    def test_limits_of_all_are_kept(self):
        host = self.host()
        answer = host.ask("PATCH", "settings", {"maxDown": 5 * MIB})
        self.assertEqual((answer.status, answer.json["maxDown"], answer.json["maxUp"]), (200, 5 * MIB, None))
        host.stop()
        host = self.again(host, "--max-up", "2M")
        self.assertEqual(host.get("settings").json["maxDown"], 5 * MIB)
        self.assertEqual(host.get("settings").json["maxUp"], 2 * MIB)
        self.assertEqual(host.ask("PATCH", "settings", {"maxDown": None}).json["maxDown"], None)
        for wrong in ({"maxDown": 0}, {"maxDown": -5}, {"maxDown": 1 << 60}, {"maxDown": "fast"}, {"speed": 1}):
            self.assert_refused(host.ask("PATCH", "settings", wrong), 400)


class Creations(PeerHostTest):

    def test_made_published_to_a_cluster_seeded_and_fetched_elsewhere(self):
        tracker = self.serve()
        host = self.host()
        data = host.folder / "shared" / "data set"
        data.mkdir(parents=True)
        (data / "one").write_bytes(os.urandom(MIB))
        (data / "two").write_bytes(os.urandom(70_001))
        announce = f"udp://127.0.0.1:{tracker.place.udp}/announce"
        order = {"path": "shared/data set", "trackers": [[announce]], "comment": "for all", "private": False,
                 "publish": {"console": f"http://127.0.0.1:{tracker.place.console}", "token": None}, "seed": True}
        answer = host.ask("POST", "creations", order)
        self.assertEqual(answer.status, 202, answer)
        wait_until(lambda: host.creation(answer.json)["state"] not in ("hashing", "publishing"), 30, "it is made")
        made = host.creation(answer.json)
        self.assertEqual((made["state"], made["reason"], made["isSeeding"]), ("done", None, True), made)
        self.assertEqual(made["published"], order["publish"]["console"])
        self.assertIn(made["hash"], made["magnet"])
        known = Console(tracker.place.console).get(f"torrents/{made['hash']}").json
        self.assertEqual((known["name"], known["hasFile"]), ("data set", True))
        file = host.get(f"creations/{made['id']}/file").content
        self.assertEqual(Console(tracker.place.console).get(f"torrents/{made['hash']}/file").content, file)
        wait_until(lambda: host.transfers()[made["hash"]]["state"] == "seeding", 20, "it is seeded")
        wait_until(lambda: host.transfers()[made["hash"]]["tracker"] == announce, 20, "the tracker knows it")
        (self.directory / "made.torrent").write_bytes(file)
        elsewhere = self.folder("elsewhere")
        program = self.program("get", self.directory / "made.torrent", "--path", elsewhere, "--listen",
                               f"127.0.0.1:{serving.free_port()}")
        self.assertEqual(program.wait(60), 0, program.words)
        for name in ("one", "two"):
            self.assertEqual((elsewhere / "data set" / name).read_bytes(), (data / name).read_bytes())
        self.assertEqual(host.ask("DELETE", f"creations/{made['id']}").status, 204)
        self.assertEqual(host.get("creations").json["creations"], [])
        self.assert_refused(host.get(f"creations/{made['id']}/file"), 404)

    def test_a_console_that_does_not_answer_is_named(self):
        host = self.host()
        (host.folder / "data").write_bytes(os.urandom(1000))
        port = serving.free_port()
        answer = host.ask("POST", "creations", {"path": "data", "publish": {"console": f"http://127.0.0.1:{port}"}})
        wait_until(lambda: host.creation(answer.json)["state"] == "failed", 20, "it fails")
        self.assertIn("not published", host.creation(answer.json)["reason"])
        self.assertEqual(host.get(f"creations/{answer.json['id']}/file").status, 200)
        self.assertEqual(host.transfers(), {})

    def test_cancelled_while_it_hashes(self):
        host = self.host()
        with open(host.folder / "large", "wb") as file:
            file.truncate(64 << 30)
        answer = host.ask("POST", "creations", {"path": "large"})
        wait_until(lambda: host.creation(answer.json)["progress"] > 0, 20, "it hashes")
        self.assertGreater(host.creation(answer.json)["byteCount"], 0)
        self.assertEqual(host.ask("DELETE", f"creations/{answer.json['id']}").status, 204)
        self.assertEqual(host.creation(answer.json)["state"], "cancelled")
        (host.folder / "small").write_bytes(b"small")
        second = host.ask("POST", "creations", {"path": "small"}).json
        wait_until(lambda: host.creation(second)["state"] == "done", 10, "the next one is made at once")
        self.assertEqual(set(host.transfers()), {host.creation(second)["hash"]})

    def test_what_makes_no_torrent_is_refused(self):
        host = self.host()
        (host.folder / "data").write_bytes(b"x")
        (host.folder / ".hidden").write_bytes(b"x")
        (self.directory / "outside").write_bytes(b"secret")
        (host.folder / "link").symlink_to(self.directory / "outside")
        (host.folder / "folder-link").symlink_to(self.directory)
        for path in ("", ".", "..", "../outside", "/etc/passwd", "data/", "a//b", ".hidden", "link", "folder-link/outside",
                     "x\0y", "a/../../outside", "./data", "data/../data", "x" * 300, "/".join(["x"] * 50)):
            with self.subTest(path=path):
                self.assert_refused(host.ask("POST", "creations", {"path": path}), 400)
        self.assert_refused(host.ask("POST", "creations", {"path": "nothing"}), 404, "nothing")
        for order in ({"path": "data", "pieceLength": 5}, {"path": "data", "pieceLength": 1 << 40},
                      {"path": "data", "trackers": [["no url"]]}, {"path": "data", "trackers": "udp://x"},
                      {"path": "data", "trackers": [["udp://x/"] * 101]}, {"path": "data", "webSeeds": ["ftp://x/"]},
                      {"path": "data", "comment": "x" * 2000}, {"path": "data", "colour": "red"}, {},
                      {"path": "data", "publish": {"console": "ftp://x"}}, {"path": 5},
                      {"path": "data", "publish": {"console": "http://127.0.0.1:1", "token": "a\r\nX: y"}}):
            with self.subTest(order=order):
                self.assert_refused(host.ask("POST", "creations", order), 400)
        self.assertEqual(host.get("creations").json["creations"], [])
        self.assert_refused(host.ask("DELETE", "creations/1"), 404)


class Folders(PeerHostTest):

    def test_what_is_below_the_directory_and_nothing_else(self):
        host = self.host()
        (host.folder / "b folder").mkdir()
        (host.folder / "a file").write_bytes(b"12345")
        (host.folder / "b folder" / "+&é").write_bytes(b"1")
        (host.folder / ".secret").write_bytes(b"x")
        (host.folder / "link").symlink_to("/etc")
        os.mkfifo(host.folder / "pipe")
        top = host.get("folders").json
        self.assertEqual([(one["name"], one["isFolder"], one["byteCount"]) for one in top["entries"]],
                         [("b folder", True, 0), ("a file", False, 5)])
        self.assertFalse(top["isCut"])
        for query in ("b+folder", "b%20folder"):
            below = host.get(f"folders?path={query}").json
            self.assertEqual([one["name"] for one in below["entries"]], ["+&é"])
        for path, status in (("..", 400), ("%2e%2e", 400), ("../..", 400), ("/etc", 400), ("link", 400), ("a file", 400),
                             ("b folder/../..", 400), (".swarmkeeper-peer", 400), ("none", 404), ("b folder/none", 404),
                             ("%00", 400)):
            with self.subTest(path=path):
                self.assert_refused(host.get(f"folders?path={path.replace(' ', '%20')}"), status)

    def test_a_thousand_are_listed(self):
        host = self.host()
        for number in range(1_005):
            (host.folder / f"{number:04}").touch()
        listed = host.get("folders").json
        self.assertEqual((len(listed["entries"]), listed["isCut"]), (1_000, True))
        self.assertEqual(listed["entries"][0]["name"], "0000")


class BadInput(PeerHostTest):

    def test_what_is_no_torrent(self):
        host = self.host()
        good = Torrent(self.id(), 70_000)
        climbing = encode({"info": {"length": 5, "name": "../up", "piece length": 16_384, "pieces": b"x" * 20}})
        absolute = encode({"info": {"files": [{"length": 5, "path": ["/etc", "passwd"]}], "name": "n",
                                    "piece length": 16_384, "pieces": b"x" * 20}})
        for body in (b"hello", b"d4:infode", good.file("")[:-5], b"l" * 100_000, climbing, absolute, b"d" + b"0:" * 10):
            with self.subTest(body=body[:40]):
                self.assert_refused(host.ask("POST", "transfers", body), 400)
        self.assert_refused(host.ask("POST", "transfers", b""), 400)
        for magnet in ("", "http://x", "magnet:?dn=x", "magnet:?xt=urn:btih:123", "magnet:?xt=urn:btih:" + "g" * 40):
            with self.subTest(magnet=magnet):
                self.assert_refused(host.ask("POST", "transfers", {"magnet": magnet}), 400)
        for order in ({"magnet": good.magnet(), "x": 1}, {"magnet": 5}, {}, {"magnet": good.magnet(), "paused": "yes"}):
            self.assert_refused(host.ask("POST", "transfers", order), 400)
        self.assert_refused(host.ask("POST", "transfers", {"magnet": good.magnet()}, {"Content-Type": "text/plain"}), 403)
        self.assert_refused(
            host.ask("POST", "transfers", {"magnet": good.magnet()}, {"Content-Type": "application/xml"}), 415)
        self.assertEqual(host.transfers(), {})
        self.assert_runs(host.program)

    def test_directories_that_lead_elsewhere(self):
        host = self.host()
        torrent = Torrent(self.id(), 70_000)
        (host.folder / "link").symlink_to(self.directory)
        (host.folder / "file").write_bytes(b"x")
        for directory in ("..", "../up", "/tmp", "a/../..", ".hidden", "a//b", "link", "link/x", "file", "x" * 256):
            with self.subTest(directory=directory):
                self.assert_refused(
                    host.ask("POST", "transfers", {"magnet": torrent.magnet(), "directory": directory}), 400)
                self.assert_refused(host.ask("POST", f"transfers?directory={directory}", torrent.file("")), 400)
        self.assertEqual(host.transfers(), {})
        self.assertEqual([path.name for path in self.directory.iterdir() if path.name in ("up", "x")], [])

    def test_hashes_orders_and_fields_that_there_are_not(self):
        host = self.host()
        torrent = Torrent(self.id(), 70_000)
        self.add(host, torrent)
        path = f"transfers/{torrent.info_hash.hex()}"
        for hash, status in (("0" * 40, 404), ("xyz", 400), ("0" * 39, 400), ("%00" * 20, 400)):
            self.assert_refused(host.get(f"transfers/{hash}"), status)
            self.assert_refused(host.ask("POST", f"transfers/{hash}/pause"), status)
            self.assert_refused(host.ask("DELETE", f"transfers/{hash}?data=true"), status)
        self.assert_refused(host.ask("POST", f"{path}/explode"), 404)
        self.assert_refused(host.ask("DELETE", f"{path}?data=maybe"), 400)
        self.assert_refused(host.ask("PUT", path), 405)
        for change in ({"maxDown": 5}, {"maxUp": -1}, {"maxPeers": 0}, {"maxPeers": 100_000}, {"ratio": -1},
                       {"ratio": 1e9}, {"name": "x"}, {"files": {}}, {"maxDown": 1e300}, [], "x", 5):
            with self.subTest(change=change):
                self.assert_refused(host.ask("PATCH", path, change), 400)
        for address in ("", "x", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000", "example.com:80", "[::1", ":80"):
            self.assert_refused(host.ask("POST", f"{path}/peers", {"address": address}), 400)
        deep = b"[" * 5_000
        self.assert_refused(host.ask("PATCH", path, deep, {"Content-Type": "application/json"}), 400)
        self.assertEqual(host.transfer(torrent)["limits"]["maxPeers"], 50)

    def test_bodies_that_are_too_large_are_not_read(self):
        host = self.host()
        for path, kind, size in (("transfers", "application/x-bittorrent", (32 << 20) + 1),
                                 ("creations", "application/json", 16_385), ("settings", "application/json", 1 << 40)):
            connection = http.client.HTTPConnection("127.0.0.1", host.port, timeout=60)
            connection.putrequest("PATCH" if path == "settings" else "POST", f"/api/v1/{path}")
            connection.putheader("Content-Type", kind)
            connection.putheader("Content-Length", str(size))
            connection.endheaders()
            answer = connection.getresponse()
            self.assertEqual(answer.status, 413, path)
            self.assertIn("error", json.loads(answer.read()))
            connection.close()
        large = {"magnet": "magnet:?xt=urn:btih:" + "0" * 40 + "&tr=" + "x" * 70_000}
        self.assert_refused(host.ask("POST", "transfers", large), 413)

    def test_foreign_hosts_and_pages_are_refused(self):
        host = self.host()
        for name in ("evil.example", "evil.example:6980", "localhost:80@evil", "127.0.0.1.evil.example"):
            self.assert_refused(host.get("transfers", Host=name), 403)
            self.assert_refused(host.get("events", Host=name), 403)
        for name in ("localhost", "127.0.0.1:6980", "[::1]:6980"):
            self.assertEqual(host.get("transfers", Host=name).status, 200)
        torrent = Torrent(self.id(), 70_000)
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                        {"Sec-Fetch-Site": "same-site"}, {"Referer": "http://evil.example/"}):
            with self.subTest(headers=headers):
                self.assert_refused(host.ask("POST", "transfers", torrent.file(""), headers), 403)
                self.assert_refused(host.ask("DELETE", f"transfers/{torrent.info_hash.hex()}", None, headers), 403)
                self.assert_refused(host.ask("PATCH", "settings", {"maxDown": 1 << 20}, headers), 403)
        self.assertEqual(host.transfers(), {})
        own = {"Origin": f"http://127.0.0.1:{host.port}", "Sec-Fetch-Site": "same-origin"}
        self.assertEqual(host.ask("POST", "transfers", torrent.file(""), own).status, 201)

    def test_the_page_lets_nothing_else_in(self):
        host = self.host()
        page = host.get("/")
        self.assertEqual(page.status, 200)
        self.assertIn("default-src 'none'", page.headers["Content-Security-Policy"])
        self.assertEqual(host.get("/peer/../../etc/passwd").status, 404)
        self.assertEqual(host.get("/peer/").status, 404)

    def test_a_token_is_asked_for(self):
        token = self.directory / "token"
        token.write_text("0123456789abcdef-a-token\n")
        token.chmod(0o600)
        host = self.host("peer", "--console-token-file", token)
        self.assert_refused(host.get("transfers"), 401)
        self.assert_refused(host.get("events"), 401)
        self.assertEqual(host.get("/").status, 200)
        host.token = "wrong"
        self.assert_refused(host.get("transfers"), 401)
        host.token = "0123456789abcdef-a-token"
        self.assertEqual(host.get("transfers").status, 200)

    def test_streams_are_counted(self):
        host = self.host()
        streams = [Stream(self, host) for _ in range(16)]
        for stream in streams:
            self.assertEqual(stream.status, 200)
        self.assertEqual(Stream(self, host).status, 503)
        streams[0].close()
        wait_until(lambda: Stream(self, host).status == 200, 10, "there is room again")


class Stream:
    """The stream of events, read."""

    def __init__(self, test, host, query=""):
        self.connection = http.client.HTTPConnection("127.0.0.1", host.port, timeout=60)
        self.connection.request("GET", f"/api/v1/events{query}")
        self.reply = self.connection.getresponse()
        self.status = self.reply.status
        if self.status == 200:
            test.addCleanup(self.close)
        else:
            self.close()

    def close(self):
        # The reply holds the socket, too.
        self.reply.close()
        self.connection.close()

    def next(self, kind="state"):
        """The next event of a kind."""
        name = None
        while True:
            line = self.reply.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: ") and name == kind:
                return json.loads(line[6:])


class Events(PeerHostTest):

    def test_all_at_first_then_what_has_changed_and_what_is_gone(self):
        host = self.host()
        one, other = Torrent("one", 70_000), Torrent("other", 80_000)
        self.add(host, one, query="?paused=true")
        stream = Stream(self, host, f"?transfer={one.info_hash.hex()}")
        first = stream.next()
        self.assertEqual([transfer["hash"] for transfer in first["transfers"]], [one.info_hash.hex()])
        self.assertEqual(set(first), {"at", "transfers", "gone", "creations", "totals", "settings"})
        self.assertEqual(first["transfers"][0]["state"], "paused")
        self.assertLess(abs(first["at"] / 1000 - time.time()), 60)
        self.assertEqual(stream.next("detail")["fileCount"], 1)
        self.add(host, other, query="?paused=true")
        told = wait_until(lambda: stream.next()["transfers"], 10, "the new one is told")
        self.assertEqual([transfer["hash"] for transfer in told], [other.info_hash.hex()])
        host.ask("DELETE", f"transfers/{one.info_hash.hex()}")
        self.assertEqual(wait_until(lambda: stream.next()["gone"], 10, "one is gone"), [one.info_hash.hex()])


class Program(PeerHostTest):

    def test_addresses_and_directories_that_are_taken(self):
        host = self.host()
        taken = host.port
        for flags, code, word in (
                (("--path", host.folder, "--console", "off", "--listen", "127.0.0.1:0"), SYSTEM, "another peer"),
                (("--path", self.folder("b"), "--console", f"127.0.0.1:{taken}", "--listen", "127.0.0.1:0"), SYSTEM,
                 f"127.0.0.1:{taken}"),
                (("--path", self.folder("c"), "--console", "off", "--listen", f"127.0.0.1:{host.peer_port}"), SYSTEM,
                 f"{host.peer_port}"),
                (("--path", self.directory / "no" / "such", "--console", "off"), SYSTEM, "--path"),
                (("--path", self.folder("d"), "--console", "0.0.0.0:0", "--listen", "127.0.0.1:0"), CONFIGURATION,
                 "token"),
                (("--path", self.folder("e"), "--console", "here"), USAGE, "here"),
                (("--path", self.folder("f"), "--max-peers", "0"), USAGE, "max-peers"),
                (("--path", self.folder("g"), "--console-key", "x"), USAGE, "console-certificate"), ((), USAGE, "--path")):
            with self.subTest(flags=flags):
                program = self.run_program("peer", *flags)
                self.assertEqual(program.status, code, program.words)
                self.assertIn(word, program.words)

    def test_a_record_that_is_damaged_or_of_a_later_version(self):
        host = self.host()
        host.stop()
        record = host.folder / ".swarmkeeper-peer.sqlite"
        whole = record.read_bytes()
        record.write_bytes(b"this is no database, and never was one" * 100)
        program = self.run_program("peer", "--path", host.folder, "--console", "off", "--listen", "127.0.0.1:0")
        self.assertEqual(program.status, SYSTEM, program.words)
        self.assertIn("damaged", program.words)
        # 60: the user version of SQLite's file format.
        record.write_bytes(whole[:60] + (99).to_bytes(4, "big") + whole[64:])
        program = self.run_program("peer", "--path", host.folder, "--console", "off", "--listen", "127.0.0.1:0")
        self.assertEqual(program.status, SYSTEM, program.words)
        self.assertIn("later version", program.words)

    def test_a_directory_that_has_gone_is_told_and_the_rest_goes_on(self):
        host = self.host()
        one, other = Torrent("one", 70_000), Torrent("other", 80_000)
        self.add(host, one, query="?directory=gone")
        self.add(host, other)
        host.stop()
        (host.folder / "gone").rmdir() if not list((host.folder / "gone").iterdir()) else os.rename(
            host.folder / "gone", self.directory / "elsewhere")
        host = self.again(host)
        lost = host.transfer(one)
        self.assertEqual(lost["state"], "failed")
        # A long path is cut before its last part.
        self.assertIn("cannot be opened: No such file", lost["reason"])
        self.assertEqual(host.state_of(other), "waitingForPeers")
        (host.folder / "gone").mkdir()
        self.assertEqual(host.order(one, "resume").status, 200)
        host.wait_for(one, "waitingForPeers")

    def test_without_a_page_and_as_json(self):
        program = self.program("peer", "--path", self.folder("quiet"), "--console", "off", "--listen", "127.0.0.1:0",
                               "--json", merges=False)
        time.sleep(1)
        wait_until(lambda: program.status is None, 1, program.words)
        program.signal(signal.SIGTERM)
        self.assertEqual(program.wait(20), 0, program.words)
        told = json.loads(program.output)
        self.assertNotIn("page", told)
        self.assertEqual(told["transfers"], 0)
        self.assertEqual(len(told["listen"]), 1)


if __name__ == "__main__":
    unittest.main()
