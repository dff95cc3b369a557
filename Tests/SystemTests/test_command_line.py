"""The command line: what it prints, for people and for programs, and how it ends."""

import hashlib
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import unittest

import metainfo
from serving import TrackerTest, free_port, require_tracker, tracker_program, wait_until

setUpModule = require_tracker

FAILED, USAGE, UNAVAILABLE, SYSTEM = 1, 2, 69, 74
COMMANDS = ["serve", "demo", "status", "doctor", "members list", "members add", "members remove", "members replace",
            "handover", "elect", "stop", "user add", "user passwd", "user remove", "user list", "user hash", "user passkey",
            "announce", "scrape", "load", "torrent create", "torrent show",
             "torrent verify", "torrent publish", "torrent share", "get", "seed", "peer", "simulate", "replay",
             "explore"]
HASH = "0123456789abcdef0123456789abcdef01234567"
OTHER = "89abcdef0123456789abcdef0123456789abcdef"

LIBTORRENT_HYBRID = """
import hashlib, json, libtorrent, sys
path, file, length = sys.argv[1], sys.argv[2], int(sys.argv[3])
storage = libtorrent.file_storage()
libtorrent.add_files(storage, path)
maker = libtorrent.create_torrent(storage, length)
libtorrent.set_piece_hashes(maker, path.rpartition("/")[0])
theirs, ours = maker.generate(), libtorrent.bdecode(open(file, "rb").read())
read = libtorrent.torrent_info(file)
print(json.dumps({
    "hashes": [str(read.info_hashes().v1), str(read.info_hashes().v2)], "bytes": read.total_size(),
    "same tree": ours[b"info"][b"file tree"] == theirs[b"info"][b"file tree"],
    "same layers": ours.get(b"piece layers") == theirs.get(b"piece layers")}))
"""
"""What libtorrent reads in a file, and whether it makes the same of the data."""


class CommandLineTest(TrackerTest):

    def succeed(self, *command, **options):
        """What a command prints; it must end well and have nothing to complain of."""
        program = self.run_program(*command, **options)
        self.assertEqual((program.status, program.words), (0, ""), program.output)
        return program.output

    def report(self, *command):
        return json.loads(self.succeed(*command, "--json"))

    def assertFails(self, code, *command, words=(), **options):
        program = self.run_program(*command, **options)
        self.assertEqual(program.status, code, program.words + program.output)
        self.assertEqual(program.output, "", "a failure prints nothing on standard output")
        for word in words:
            self.assertIn(word, program.words)
        return program.words


class Help(CommandLineTest):

    def test_each_command_has_help(self):
        for command in ["", *COMMANDS]:
            with self.subTest(command=command):
                text = self.succeed(*command.split(), "--help")
                self.assertIn(f"USAGE: tracker {command}".strip(), text)
                self.assertIn("--help", text)
                for line in text.splitlines():
                    self.assertTrue(len(line) <= 80 or line.startswith("USAGE"), line)

    def test_what_help_promises_is_there(self):
        """Each command that is listed has help, each file that is named exists."""
        text = self.succeed("--help")
        listed = re.findall(r"^  ([a-z]+) {2,}", text[text.index("SUBCOMMANDS"):], re.MULTILINE)
        self.assertEqual(sorted({command.split()[0] for command in COMMANDS}), sorted(listed))
        root = pathlib.Path(__file__).resolve().parents[2]
        for command in COMMANDS:
            for file in re.findall(r"(?:docs|examples)/[\w.-]+\w", self.succeed(*command.split(), "--help")):
                with self.subTest(command=command, file=file):
                    self.assertTrue((root / file).exists(), f"`tracker {command} --help` names {file}")

    def test_version(self):
        self.assertRegex(self.succeed("--version"), r"^\d+\.\d+\.\d+\n$")

    def test_what_makes_no_sense(self):
        for command, word in [
                (["sevre"], "sevre"),
                (["announce"], "url"),
                (["announce", "udp://127.0.0.1:6969"], "infohash"),
                (["announce", "udp://127.0.0.1:6969", "xyz"], "40 hexadecimal digits"),
                (["announce", "udp://127.0.0.1:6969", HASH * 2], "40 hexadecimal digits"),
                (["announce", "gopher://127.0.0.1:6969", HASH], "gopher"),
                (["announce", "udp://127.0.0.1:6969", HASH, "--port", "0"], "port"),
                (["announce", "udp://127.0.0.1:6969", HASH, "--event", "paused"], "paused"),
                (["scrape", "udp://127.0.0.1:6969"], "infohash"),
                (["status", "--console", "host:port:more"], "host:port:more"),
                (["load", "http://127.0.0.1:6969"], "udp://"),
                (["load", "udp://127.0.0.1:6969", "--fill", "--filled"], "--fill"),
                (["load", "udp://127.0.0.1:6969", "--rate", "1", "--in-flight", "1"], "--rate"),
                (["load", "udp://127.0.0.1:6969", "--torrents", "0"], "torrents"),
                (["torrent", "create"], "path"),
                (["torrent", "share"], "path"),
                (["get", "--path", "."], "torrent"),
                (["get", HASH], "--path"),
                (["get", HASH, "--path", ".", "--files", "1-"], "1-"),
                (["get", HASH, "--path", ".", "--max-down", "fast"], "fast"),
                (["get", HASH, "--path", ".", "--peer", "example.com"], "example.com"),
                (["get", HASH, "--path", ".", "--max-peers", "0"], "--max-peers"),
                (["get", HASH, "--path", ".", "--give-up-after", "soon"], "soon"),
                (["seed", "x.torrent"], "--path"),
                (["seed", HASH, "--path", "."], ".torrent"),
                (["seed", "x.torrent", "--path", ".", "--seed-ratio", "-1"], "seed-ratio"),
                (["torrent", "create", __file__, "--piece-length", "12"], "12"),
                (["serve", "--udp", "nowhere"], "nowhere"),
                (["serve", "extra"], "extra")]:
            with self.subTest(command=" ".join(command)):
                self.assertFails(USAGE, *command, words=[word])


class Asking(CommandLineTest):

    def setUp(self):
        self.tracker = self.serve()
        place = self.tracker.place
        self.urls = [f"udp://127.0.0.1:{place.udp}", f"http://127.0.0.1:{place.http}/announce"]
        self.console = f"127.0.0.1:{place.console}"

    def test_announce_and_scrape(self):
        for number, url in enumerate(self.urls):
            with self.subTest(url=url):
                info_hash = [HASH, OTHER][number]
                first = self.report("announce", url, info_hash, "--port", "7001", "--left", "0")
                required = {"url", "infoHash", "server", "roundTripMilliseconds", "intervalSeconds", "seeders",
                            "leechers", "peers"}
                self.assertLessEqual(required, set(first))
                self.assertLessEqual(set(first), required | {"minIntervalSeconds", "completed", "warning"})
                self.assertEqual((first["infoHash"], first["seeders"], first["leechers"], first["peers"]),
                                 (info_hash, 1, 0, []))
                self.assertTrue(1_700 <= first["intervalSeconds"] <= 1_900, first)
                # What completes is the download of the client that is there: of the same peer id.
                client = ["--port", "7002", "--peer-id", "2d534b303030312d303132333435363738393031"]
                second = self.report("announce", url, info_hash, *client, "--left", "9")
                self.assertEqual((second["seeders"], second["leechers"]), (1, 1))
                self.assertEqual([peer["address"] for peer in second["peers"]], ["127.0.0.1:7001"])
                done = self.report("announce", url, info_hash, *client, "--left", "0", "--event", "completed")
                self.assertEqual((done["seeders"], done["leechers"], done["peers"]), (2, 0, []))
                gone = self.report("announce", url, info_hash, "--port", "7001", "--event", "stopped")
                self.assertEqual((gone["seeders"], gone["peers"]), (1, []))
                self.assertIn("127.0.0.1:7002", self.succeed("announce", url, info_hash, "--port", "7003"))

                unknown = "f" * 40
                found = self.report("scrape", url, info_hash, unknown, info_hash)
                self.assertEqual(found["url"], url)
                known = {"infoHash": info_hash, "seeders": 1, "leechers": 1, "completed": 1}
                self.assertEqual([found["torrents"][0], found["torrents"][2]], [known, known])
                self.assertEqual(found["torrents"][1]["infoHash"], unknown)
                self.assertIn(info_hash, self.succeed("scrape", url, info_hash))

    def test_a_scrape_of_many(self):
        hashes = [hashlib.sha1(str(number).encode()).hexdigest() for number in range(200)]
        for url in self.urls:
            with self.subTest(url=url):
                self.report("announce", url, hashes[150], "--left", "0")
                found = self.report("scrape", url, *hashes)["torrents"]
                self.assertEqual([torrent["infoHash"] for torrent in found], hashes)
                self.assertEqual(found[150]["seeders"], 1)

    def test_announce_over_a_host_name_and_with_a_peer_id(self):
        place = self.tracker.place
        self.report("announce", f"udp://localhost:{place.udp}/announce", HASH, "--port", "7008",
                    "--peer-id", "-XX0000-abcdefghijkl")
        self.report("announce", self.urls[1], HASH, "--peer-id", b"-YY0000-abcdefghijkl".hex(), "--port", "7009")
        self.assertEqual(self.tracker.node()["peers"], 2)

    def test_status(self):
        self.report("announce", self.urls[0], HASH)
        status = self.report("status", "--console", self.console)
        self.assertEqual(
            set(status),
            {"version", "processID", "startedAt", "uptimeSeconds", "listeners", "node", "cluster", "recording"})
        self.assertEqual((status["cluster"]["mode"], status["cluster"]["master"]), ("alone", 1))
        self.assertEqual(status["processID"], self.tracker.pid)
        self.assertEqual({listener["service"] for listener in status["listeners"]}, {"udp", "http", "api"})
        node = status["node"]
        self.assertLessEqual(
            {"id", "role", "epoch", "commitIndex", "lastIndex", "digest", "accessMode", "torrents", "peers", "peersIPv4",
             "peersIPv6", "seeders", "registeredTorrents", "intervalSeconds", "waitingRequests", "counters"}, set(node))
        self.assertEqual((node["id"], node["role"], node["accessMode"]), (1, "master", "open"))
        self.assertEqual((node["torrents"], node["peers"], node["seeders"], node["counters"]["announces"]), (1, 1, 0, 1))
        text = self.succeed("status", "--console", self.console)
        self.assertIn("master", text)
        self.assertIn(self.console, text)

    def test_load(self):
        for arguments, mode in [(["--seconds", "1", "--warm-up", "0"], "closed"),
                                (["--seconds", "1", "--warm-up", "0", "--rate", "500"], "open"),
                                (["--fill", "--torrents", "100", "--peers", "1000", "--seed", "5"], "fill")]:
            with self.subTest(mode=mode):
                found = self.report("load", self.urls[0], *arguments)
                self.assertLessEqual(
                    {"mode", "target", "torrents", "peers", "sources", "sent", "answered", "lost", "late", "unsent",
                     "errors", "wrong", "seconds", "repliesPerSecond", "latencyMicroseconds", "meanPeersPerReply",
                     "generatorLoad"}, set(found))
                self.assertEqual(found["mode"], mode)
                self.assertGreater(found["answered"], 0)
                self.assertEqual(sum(found["wrong"].values()) + found["errors"], 0, found)
                latency = found["latencyMicroseconds"]
                self.assertTrue(0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["p999"] <= latency["max"])
        self.assertIn("answered", self.succeed("load", self.urls[0], "--seconds", "1", "--warm-up", "0"))

    def test_a_refusal(self):
        place = self.place()
        listed = self.directory / "list.txt"
        listed.write_text(OTHER + "\n")
        self.serve(place, "--access", "allow", "--access-list", listed)
        for url in (f"udp://127.0.0.1:{place.udp}", f"http://127.0.0.1:{place.http}/announce"):
            self.assertFails(FAILED, "announce", url, HASH, words=["not on this tracker's list"])
            self.assertFails(FAILED, "announce", url, HASH, "--json", words=["not on this tracker's list"])
            self.report("announce", url, OTHER)

    def test_users(self):
        place = self.place()
        users = self.directory / "users.txt"
        users.write_text("alice 0a1b2c3d4e5f6071\n")
        self.serve(place, "--access", "private", "--users", users)
        udp, http = f"udp://127.0.0.1:{place.udp}", f"http://127.0.0.1:{place.http}"
        self.assertFails(FAILED, "announce", f"{udp}/announce", HASH, words=["passkey"])
        self.assertFails(FAILED, "announce", f"{http}/announce", HASH, words=["passkey"])
        self.assertFails(FAILED, "announce", f"{http}/wrongwrongwrong/announce", HASH, words=["passkey"])
        for url in (f"{udp}/0a1b2c3d4e5f6071/announce", f"{http}/0a1b2c3d4e5f6071/announce"):
            self.assertEqual(self.report("announce", url, HASH)["leechers"], 1)

    def test_a_console_with_a_token(self):
        place = self.place()
        token, wrong = self.directory / "token", self.directory / "wrong"
        token.write_text("a" * 32 + "\n")
        wrong.write_text("b" * 32 + "\n")
        self.serve(place, "--console-token-file", token)
        console = f"127.0.0.1:{place.console}"
        self.assertFails(FAILED, "status", "--console", console, words=["token"])
        self.assertFails(FAILED, "status", "--console", console, "--token-file", wrong, words=["token"])
        self.assertEqual(self.report("status", "--console", console, "--token-file", token)["node"]["role"], "master")

    def test_a_check_of_the_configuration_starts_nothing(self):
        place = self.place()
        self.assertIn("fine", self.succeed("serve", *place.flags, "--check"))
        self.assertFalse(place.data.exists())


class Nobody(CommandLineTest):
    """There is no tracker."""

    def test_nobody_listens(self):
        port = free_port()
        for command in (["announce", f"udp://127.0.0.1:{port}", HASH, "--timeout", "2s"],
                        ["announce", f"http://127.0.0.1:{port}/announce", HASH, "--timeout", "2s"],
                        ["scrape", f"udp://127.0.0.1:{port}", HASH, "--timeout", "2s"],
                        ["scrape", f"http://127.0.0.1:{port}/announce", HASH, "--timeout", "2s"],
                        ["status", "--console", f"127.0.0.1:{port}"],
                        ["load", f"udp://127.0.0.1:{port}", "--seconds", "1"]):
            with self.subTest(command=" ".join(command)):
                self.assertFails(UNAVAILABLE, *command, words=[str(port)])

    def test_somebody_is_silent(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            url = f"udp://127.0.0.1:{silent.getsockname()[1]}"
            self.assertFails(UNAVAILABLE, "announce", url, HASH, "--timeout", "1s", words=["1s"], within=5)

    def test_a_host_that_does_not_exist(self):
        for command in ("announce", "scrape"):
            self.assertFails(UNAVAILABLE, command, "udp://tracker.invalid:6969", HASH, "--timeout", "5s",
                             words=["tracker.invalid"])


class Torrents(CommandLineTest):

    def make(self):
        """A directory of files, and the bytes that the torrent's pieces are of."""
        root = self.directory / "data set"
        (root / "sub").mkdir(parents=True)
        files = {"a.bin": b"A" * 100_000, "sub/b.bin": b"", "sub/c.bin": bytes(range(256)) * 300, "z": b"end"}
        for name, content in files.items():
            (root / name).write_bytes(content)
        return root, files

    def test_a_torrent_of_one_file_has_the_info_hash_that_python_computes(self):
        torrent = metainfo.Torrent(1, 300_000)
        source = self.directory / torrent.name
        source.write_bytes(torrent.payload)
        made = self.report("torrent", "create", source, "--announce", "udp://127.0.0.1:6969/announce", "--private",
                           "--piece-length", "64K", "--no-date", "--output", self.directory / "one.torrent")
        self.assertEqual(set(made), {"file", "name", "infoHash", "magnet", "totalBytes", "pieceBytes", "pieces", "files",
                                     "skipped"})
        self.assertEqual(made["infoHash"], torrent.info_hash.hex())
        self.assertEqual((made["totalBytes"], made["pieceBytes"], made["pieces"], made["files"], made["skipped"]),
                         (300_000, 65_536, 5, 1, []))
        self.assertIn(f"urn:btih:{made['infoHash']}", made["magnet"])
        shown = self.report("torrent", "show", made["file"])
        self.assertLessEqual({"name", "version", "infoHash", "magnet", "totalBytes", "pieceBytes", "pieces", "private",
                              "trackers", "webSeeds", "files"}, set(shown))
        self.assertEqual((shown["infoHash"], shown["version"], shown["private"], shown["trackers"], shown["files"]),
                         (made["infoHash"], "v1", True, [["udp://127.0.0.1:6969/announce"]],
                          [{"path": torrent.name, "bytes": 300_000}]))
        self.assertIn(made["infoHash"], self.succeed("torrent", "show", made["file"]))
        # The same files, made again, are the same bytes.
        again = self.report("torrent", "create", source, "--announce", "udp://127.0.0.1:6969/announce", "--private",
                            "--piece-length", "64K", "--no-date", "--output", self.directory / "two.torrent")
        self.assertEqual(pathlib.Path(again["file"]).read_bytes(), pathlib.Path(made["file"]).read_bytes())

    def test_several_paths_tiers_and_web_seeds(self):
        root, _ = self.make()
        other = self.directory / "a note.txt"
        other.write_bytes(b"note" * 9_000)
        file = self.directory / "several.torrent"
        self.assertFails(FAILED, "torrent", "create", root, other, "--output", file, words=["--name"])
        self.assertFails(FAILED, "torrent", "create", other, other, "--name", "x", "--output", file,
                         words=["a note.txt", "rename"])
        self.report("torrent", "create", root, other, "--name", "both", "--output", file,
                    "--announce", "udp://127.0.0.1:1", "--announce", "udp://127.0.0.1:2",
                    "--tier", "udp://127.0.0.1:3,http://127.0.0.1:4/announce", "--tier", "udp://127.0.0.1:5",
                    "--web-seed", "https://127.0.0.1/data/")
        shown = self.report("torrent", "show", file)
        self.assertEqual(shown["name"], "both")
        self.assertEqual(
            [one["path"] for one in shown["files"]],
            ["a note.txt", "data set/a.bin", "data set/sub/b.bin", "data set/sub/c.bin", "data set/z"])
        self.assertEqual(shown["trackers"], [["udp://127.0.0.1:1", "udp://127.0.0.1:2"],
                                             ["udp://127.0.0.1:3", "http://127.0.0.1:4/announce"],
                                             ["udp://127.0.0.1:5"]])
        self.assertEqual(shown["webSeeds"], ["https://127.0.0.1/data/"])
        for flag in (["--tier", "udp://a:1,"], ["--web-seed", "udp://a:1"]):
            self.assertFails(USAGE, "torrent", "create", other, *flag, words=[flag[0]])

    def test_data_is_verified_file_by_file(self):
        root, files = self.make()
        file = self.directory / "set.torrent"
        made = self.report("torrent", "create", root, "--output", file, "--piece-length", "16K")
        for place in (root, root.parent):
            self.assertIn("right", self.succeed("torrent", "verify", file, place))
        found = self.report("torrent", "verify", file, root)
        self.assertEqual((found["right"], found["wrongPieces"], found["pieces"]), (True, [], made["pieces"]))

        def verify():
            program = self.run_program("torrent", "verify", file, root, "--json")
            self.assertEqual((program.status, program.words), (FAILED, ""))
            found = json.loads(program.output)
            return found["wrongPieces"], {one["path"]: one["state"] for one in found["files"]}

        flipped = bytearray(files["a.bin"])
        flipped[40_000] ^= 1
        (root / "a.bin").write_bytes(flipped)
        right = dict.fromkeys(files, "right")
        self.assertEqual(verify(), ([2], right | {"a.bin": "wrong"}))
        self.assertFailsAloud(file, root, "a.bin", "1 of 7 pieces wrong")
        (root / "a.bin").write_bytes(files["a.bin"])
        (root / "z").write_bytes(b"end and more")
        self.assertEqual(verify(), ([], right | {"z": "size"}))
        (root / "z").write_bytes(b"end")
        (root / "sub/b.bin").unlink()
        self.assertEqual(verify(), ([], right | {"sub/b.bin": "missing"}))
        (root / "sub/b.bin").touch()
        (root / "sub/c.bin").unlink()
        wrong, states = verify()
        self.assertEqual(wrong, list(range(100_000 // 16_384, made["pieces"])))
        self.assertEqual(states["sub/c.bin"], "missing")
        self.assertFails(SYSTEM, "torrent", "verify", self.directory / "none", root, words=["none"])

    def assertFailsAloud(self, file, root, *words):
        """What is wrong with data is the answer, on standard output."""
        program = self.run_program("torrent", "verify", file, root)
        self.assertEqual((program.status, program.words), (FAILED, ""))
        for word in words:
            self.assertIn(word, program.output)

    def test_a_torrent_is_published(self):
        tracker = self.serve()
        root, _ = self.make()
        file = self.directory / "set.torrent"
        made = self.report("torrent", "create", root, "--output", file)
        console = f"127.0.0.1:{tracker.place.console}"
        published = self.report("torrent", "publish", file, "--console", console)
        self.assertEqual((published["infoHash"], published["name"], published["isNew"], published["namesCluster"]),
                         (made["infoHash"], "data set", True, False))
        self.assertIn(made["infoHash"], published["magnet"])
        self.assertEqual(tracker.get(f"/api/v1/torrents/{made['infoHash']}/file"), file.read_bytes())
        self.assertFalse(self.report("torrent", "publish", file, "--console", console)["isNew"])
        self.assertIn("already", self.succeed("torrent", "publish", file, "--console", console))
        self.assertFails(FAILED, "torrent", "publish", file, "--console", console, "--new", words=["already"])
        self.assertFails(UNAVAILABLE, "torrent", "publish", file, "--console", f"127.0.0.1:{free_port()}",
                         words=["--console"])
        self.assertFails(FAILED, "torrent", "publish", __file__, "--console", console, words=[__file__])

    def test_a_torrent_of_a_directory_is_what_others_make_of_it(self):
        root, files = self.make()
        (root / "link").symlink_to("a.bin")
        file = self.directory / "set.torrent"
        made = self.report("torrent", "create", root, "--output", file, "--piece-length", "32K", "--comment", "für alle",
                           "--announce", "udp://127.0.0.1:1", "--announce", "udp://127.0.0.1:2")
        self.assertEqual([pathlib.Path(path).name for path in made["skipped"]], ["link"])
        shown = self.report("torrent", "show", file)
        self.assertEqual([(one["path"], one["bytes"]) for one in shown["files"]],
                         [(name, len(content)) for name, content in files.items()])
        self.assertEqual((shown["name"], shown["comment"]), ("data set", "für alle"))
        self.assertEqual(shown["trackers"], [["udp://127.0.0.1:1", "udp://127.0.0.1:2"]])
        everything = b"".join(files.values())
        info = {"name": "data set", "piece length": 32_768,
                "files": [{"length": len(content), "path": name.split("/")} for name, content in files.items()],
                "pieces": b"".join(hashlib.sha1(everything[at:at + 32_768]).digest()
                                   for at in range(0, len(everything), 32_768))}
        self.assertEqual(made["infoHash"], hashlib.sha1(metainfo.encode(info)).hexdigest())

        transmission = subprocess.run(["transmission-show", file], capture_output=True, encoding="utf-8", check=True)
        self.assertIn(made["infoHash"], transmission.stdout)
        self.assertIn("Piece Count: 6", transmission.stdout)
        libtorrent = subprocess.run(
            ["/usr/bin/python3", "-c", "import libtorrent, sys; t = libtorrent.torrent_info(sys.argv[1]); "
             "print(t.info_hash(), t.num_files(), t.total_size())", file],
            capture_output=True, encoding="utf-8", check=True)
        self.assertEqual(libtorrent.stdout.split(), [made["infoHash"], "4", str(len(everything))])

    def test_a_hybrid_is_what_libtorrent_makes_of_it(self):
        """It reads both info hashes as they are, and makes the same trees of hashes of the same files.

        The lists of files differ: it puts padding behind the last file, too.
        """
        content = random.Random(4).randbytes
        trees = {
            "one file": {"": content(100_000)}, "one short file": {"": content(5)},
            "one long file": {"": content(1 << 20)},
            "many": {"a": content(70_000), "b/empty": b"", "b/c": content(32_768), "b/d/e": content(1),
                     "z": content(99_999)},
            "empty at the end": {"a": content(40_000), "b": b""},
            "empty at the start": {"a": b"", "b": content(40_000)},
            "twins": {"a": bytes(100_000), "b": bytes(100_000), "c": bytes(100_000)},
            "order": {"a.b": content(20_000), "a/b": content(20_000), "a-b": content(20_000)}}
        for number, (name, files) in enumerate(trees.items()):
            with self.subTest(name):
                root = self.directory / f"tree-{number}"
                for path, data in files.items():
                    place = root / path if path else root
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(data)
                file = self.directory / f"{number}.torrent"
                made = self.report("torrent", "create", root, "--hybrid", "--piece-length", "32K", "--output", file,
                                   "--no-date")
                theirs = json.loads(subprocess.run(
                    ["/usr/bin/python3", "-c", LIBTORRENT_HYBRID, root, file, str(32_768)], capture_output=True,
                    encoding="utf-8", check=True).stdout)
                self.assertEqual([made["infoHash"], made["infoHashV2"]], theirs["hashes"])
                self.assertTrue(theirs["same tree"] and theirs["same layers"], theirs)
                self.assertEqual(made["totalBytes"], sum(map(len, files.values())))
                self.assertEqual(made["files"], len(files))
                shown = self.report("torrent", "show", file)
                self.assertEqual((shown["version"], shown["infoHashV2"]), ("hybrid", made["infoHashV2"]))
                self.assertIn(f"urn:btmh:1220{made['infoHashV2']}", made["magnet"])
                self.assertTrue(self.report("torrent", "verify", file, root)["right"])

    def test_a_file_that_is_there_is_not_replaced_unless_told(self):
        root, _ = self.make()
        file = self.directory / "mine.torrent"
        file.write_text("mine")
        self.assertFails(FAILED, "torrent", "create", root, "--output", file, words=[str(file), "--force"])
        self.assertEqual(file.read_text(), "mine")
        self.succeed("torrent", "create", root, "--output", file, "--force")
        self.assertNotEqual(file.read_bytes(), b"mine")

    def test_what_cannot_be_made_or_shown(self):
        missing, empty = self.directory / "missing", self.directory / "empty"
        empty.mkdir()
        self.assertFails(SYSTEM, "torrent", "create", missing, "--output", self.directory / "x", words=[str(missing)])
        self.assertFails(FAILED, "torrent", "create", empty, "--output", self.directory / "x", words=[str(empty)])
        self.assertFails(SYSTEM, "torrent", "create", __file__, "--output", missing / "x", words=[str(missing)])
        self.assertFails(SYSTEM, "torrent", "show", missing, words=[str(missing)])
        self.assertFails(SYSTEM, "torrent", "show", empty, words=[str(empty)])
        self.assertFails(FAILED, "torrent", "show", __file__, words=[__file__])
        whole = metainfo.Torrent(2, 200_000).file("udp://127.0.0.1:6969")
        cut = self.directory / "cut.torrent"
        for length in range(0, len(whole), 37):
            cut.write_bytes(whole[:length])
            self.assertFails(FAILED, "torrent", "show", cut, words=[str(cut)])

    def test_a_piece_layer_that_does_not_lead_to_its_root(self):
        """A torrent of version 2 (BEP 52), of one file of two pieces: as it should be, and damaged in two ways."""
        piece_length, content = 32_768, random.Random(3).randbytes(50_000)
        leaves = [hashlib.sha256(content[at:at + 16_384]).digest() for at in range(0, len(content), 16_384)]
        layer = [hashlib.sha256(left + right).digest() for left, right in zip(leaves[::2], leaves[1::2], strict=True)]
        root = hashlib.sha256(b"".join(layer)).digest()

        def torrent(root, layer):
            info = {"file tree": {"data.bin": {"": {"length": len(content), "pieces root": root}}}, "meta version": 2,
                    "name": "data.bin", "piece length": piece_length}
            file = self.directory / "v2.torrent"
            # The keys of the layers are roots, not text.
            layers = b"d" + metainfo.encode(root) + metainfo.encode(b"".join(layer)) + b"e"
            file.write_bytes(b"d4:info" + metainfo.encode(info) + b"12:piece layers" + layers + b"e")
            return file, hashlib.sha256(metainfo.encode(info)).hexdigest()

        file, info_hash = torrent(root, layer)
        shown = self.report("torrent", "show", file)
        self.assertEqual((shown["version"], shown["infoHashV2"], shown["pieces"], shown["files"]),
                         ("v2", info_hash, 2, [{"path": "data.bin", "bytes": len(content)}]))
        other = bytes([root[0] ^ 1]) + root[1:]
        for file, _ in (torrent(other, layer), torrent(root, layer[::-1])):
            for flags in ([], ["--json"]):
                self.assertFails(FAILED, "torrent", "show", file, *flags,
                                 words=[str(file), "has hashes that do not lead to the “pieces root” of the file"])
        # Nor is it registered.
        file, _ = torrent(other, layer)
        torrents = self.directory / "torrents"
        torrents.mkdir()
        file.rename(torrents / "bad.torrent")
        tracker = self.serve(None, "--torrents", torrents)
        wait_until(lambda: "bad.torrent" in tracker.words, 10, lambda: f"it is told:\n{tracker.words}")
        self.assertEqual(tracker.node()["registeredTorrents"], 0)

    def test_the_directory_of_registered_torrents(self):
        root, _ = self.make()
        torrents = self.directory / "torrents"
        torrents.mkdir()
        made = self.report("torrent", "create", root, "--output", torrents / "set.torrent")
        (torrents / "broken.torrent").write_text("d4:info")
        tracker = self.serve(None, "--torrents", torrents)
        wait_until(lambda: tracker.node()["registeredTorrents"] == 1, 10, lambda: f"it is registered:\n{tracker.words}")
        self.assertIn("broken.torrent", tracker.words)
        listed = json.loads(tracker.get("/api/v1/torrents"))["torrents"]
        self.assertEqual([(one["infoHash"], one["name"], one["byteCount"]) for one in listed],
                         [(made["infoHash"], "data set", made["totalBytes"])])


class Simulating(CommandLineTest):

    def test_a_sweep_tells_programs_what_it_has_found(self):
        report = self.report("simulate", "--profile", "paxos", "--seeds", "1..4")
        self.assertEqual(set(report), {"scenarios", "failures", "simulated_seconds", "wall_seconds", "events",
                                       "trace_hash"})
        self.assertEqual((report["scenarios"], report["failures"]), (4, []))
        self.assertRegex(report["trace_hash"], "^[0-9a-f]{16}$")
        self.assertGreater(min(report["simulated_seconds"], report["wall_seconds"], report["events"]), 0)

    def test_a_census_is_the_same_on_any_number_of_processors_and_tells_zeros(self):
        words = ["simulate", "--seeds", "1..40", "--census"]
        report = self.report(*words)
        self.assertEqual(set(report["census"]), {"classic", "rotating", "lowest", "paxos", "alone"})
        paxos, alone = report["census"]["paxos"], report["census"]["alone"]
        self.assertGreater(paxos["messages_said"]["PREPARE"], 0)
        self.assertEqual(alone["messages_said"]["PREPARE"], 0)
        self.assertEqual(sum(one["scenarios"] for one in report["census"].values()), 40)
        processor = min(os.sched_getaffinity(0))
        alone = subprocess.run(["taskset", "-c", str(processor), tracker_program(), *words, "--json"],
                               capture_output=True, check=True, timeout=600)
        self.assertEqual(json.loads(alone.stdout)["census"], report["census"])
        text = self.run_program(*words)
        self.assertEqual(text.status, 0, text.words)
        said = text.output.split("messages said\n")[1].split("\n\n")[0].splitlines()
        sums = [sum(int(number.replace(",", "")) for number in line.split()[:5]) for line in said]
        self.assertEqual((sums, len(said)), (sorted(sums), 27))
        self.assertEqual(sums[0], 0)
        self.assertFails(USAGE, "simulate", "--swarm", "--count", "3", "--census", words=["--census"])

    def test_a_run_with_what_ifs_is_the_same_by_flags_and_by_words(self):
        flags = ["replay", "17", "--profile", "paxos", "--what-if", "412.kill.2.8000", "--what-if", "900.wake.0"]
        replay = self.report(*flags)
        self.assertEqual(replay["command"], "tracker " + " ".join(flags))
        self.assertEqual([one["what_if"] for one in replay["what_ifs"]], ["412.kill.2.8000", "900.wake.0"])
        self.assertNotIn("unmet", replay["what_ifs"][0])
        self.assertIn("is up", replay["what_ifs"][1]["unmet"])
        self.assertFalse(replay["waits"])
        self.assertEqual(replay["violations"], [])
        self.assertTrue(any("dies: the player; is down for 8.000 s" in line for line in replay["trace"]))
        words = self.report("replay", "--words", "seed=17&profile=paxos&if=412.kill.2.8000,900.wake.0")
        self.assertEqual(words, replay)
        plain = self.report("replay", "17", "--profile", "paxos")
        self.assertNotEqual(plain["trace_hash"], replay["trace_hash"])
        self.assertEqual(plain["trace"][:100], replay["trace"][:100])

    def test_a_run_whose_network_is_the_player_waits_and_says_so(self):
        program = self.run_program("replay", "--words", "story=master-dies&if=200.net,200.time,9999.wake.0", "--quiet")
        self.assertEqual((program.status, program.output), (0, ""))
        for words in ["waits after step 201", "201.time", "9999.wake.0 came to nothing"]:
            self.assertIn(words, program.words)

    def test_a_cluster_may_have_no_clients(self):
        self.assertEqual(self.run_program("replay", "1", "--quiet", "--clients", "0").status, 0)

    def test_what_cannot_be_written_is_told_with_cause_and_way_out(self):
        for flag in ["--svg", "--pcap"]:
            program = self.run_program("replay", "1", "--quiet", flag, self.directory)
            self.assertEqual(program.status, SYSTEM, program.words)
            self.assertIn(f"{self.directory}: this is a directory; name a file in it\n", program.words)

    def test_what_names_no_run_is_refused(self):
        for command, word in [
            (["replay"], "no run is named"), (["replay", "--words", "seed=1&profile=paxo"], "no profile"),
            (["replay", "1", "--words", "seed=1"], "leave out the seed"),
            (["replay", "--words", "seed=1", "--nodes", "3"], "leave out --nodes"),
            (["replay", "1", "--what-if", "5.melt.2"], "which nobody can do"),
            (["replay", "1", "--what-if", "9.net", "--what-if", "5.net"], "in the order of their steps"),
            (["replay", "1", "--swarm", "--what-if", "5.net"], "--what-if"),
            (["replay", "1", "2"], "1 is a seed, and one seed is replayed at a time"),
            (["replay", "1", "--stress", "lossy", "--stress", "crashes"], "--stress lossy --stress crashes"),
            (["simulate", "--count", "1", "--stress", "lossy", "--stress", "crashes"], "one stress"),
        ]:
            with self.subTest(command=command):
                self.assertFails(USAGE, *command, words=[word])

    def test_a_sweep_of_swarms_tells_the_same_as_their_replays(self):
        report = self.report("simulate", "--swarm", "--seeds", "1..60")
        self.assertEqual((report["scenarios"], report["failures"]), (60, []))
        again = self.report("simulate", "--swarm", "--count", "60")
        self.assertEqual((again["trace_hash"], again["events"]), (report["trace_hash"], report["events"]))
        alone = self.report("simulate", "--swarm", "--seed", "7")
        # A replay says on standard error how it ended.
        program = self.run_program("replay", "7", "--swarm", "--json")
        self.assertEqual(program.status, 0, program.words)
        replay = json.loads(program.output)
        self.assertEqual(set(replay), {"command", "options", "seed", "violations", "peers", "events",
                                       "simulated_seconds", "trace_hash", "trace"})
        self.assertEqual((replay["seed"], replay["violations"], replay["command"]),
                         (7, [], "tracker replay 7 --swarm"))
        self.assertEqual((replay["events"], replay["simulated_seconds"]),
                         (alone["events"], alone["simulated_seconds"]))
        # A sweep's hash is one of hashes; that of one swarm is told by its trace.
        self.assertEqual(replay["trace"][-1], "trace hash " + replay["trace_hash"])
        self.assertTrue(any(peer.get("done") for peer in replay["peers"]))

    def test_a_replay_of_a_swarm_shows_a_part_of_it(self):
        whole = self.run_program("replay", "7", "--swarm")
        self.assertEqual((whole.status, whole.words), (0, "seed 7, a swarm: no promise broken\n"))
        self.assertIn("leechers", whole.output.splitlines()[0])
        part = self.run_program("replay", "7", "--swarm", "--peer", "1", "--kind", "lives", "--until", "20").output
        lines = [line for line in part.splitlines()[3:-1] if "all is repaired" not in line]
        self.assertTrue(lines)
        for line in lines:
            seconds, column, _ = line.split(" │ ", 2)
            self.assertLessEqual(float(seconds), 20)
            self.assertTrue(column.startswith("1 "), line)
            self.assertIn(line, whole.output)
        self.assertEqual(part.splitlines()[-1], whole.output.splitlines()[-1])
        self.assertEqual(self.run_program("replay", "7", "--swarm", "--quiet").output, "")

    def test_what_swarms_have_not_is_refused(self):
        for flags in (["--profile", "paxos"], ["--nodes", "3"], ["--stress", "lossy"], ["--seconds", "9"]):
            self.assertFails(USAGE, "simulate", "--swarm", "--count", "1", *flags, words=[flags[0], "--swarm"])
        for flags in (["--shrink"], ["--at", "3"], ["--tracker", "1"], ["--faults", "2"]):
            self.assertFails(USAGE, "replay", "7", "--swarm", *flags, words=[flags[0], "--swarm"])
        self.assertFails(USAGE, "replay", "7", "--peer", "1", words=["--peer", "--swarm"])
        self.assertFails(USAGE, "replay", "7", "--swarm", "--peer", "999", words=["no peer 999"])


if __name__ == "__main__":
    unittest.main()
