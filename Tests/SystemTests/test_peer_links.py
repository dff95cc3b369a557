"""What magnet links say besides the info hash (BEP 9, 53), and what our peer owes its callers, trackers and files."""

import http.server
import signal
import threading
import unittest
import urllib.parse

import raw_peer
import web_seeds
from metainfo import Torrent, encode
from peers import PeerTest, events_in
from raw_peer import BITFIELD, HAVE_ALL, Metadata, Wire
from serving import free_port, require_tracker, wait_until

setUpModule = require_tracker

MIB = 1 << 20
FAILED = 1


class MagnetLinks(PeerTest):

    def fetch(self, link, *flags):
        program = self.get(None, (), *flags, source=link, folder=self.folder(f"by-{len(self.programs)}"))
        return program

    def test_the_peers_of_a_link_are_called(self):
        """By address and by name."""
        torrent = Torrent(self.id(), MIB, is_private=False)
        with Metadata(torrent, host="127.0.0.1") as seeder:
            port = seeder.address[1]
            for peer in (f"127.0.0.1:{port}", f"localhost:{port}", f"%5B::ffff:127.0.0.1%5D:{port}"):
                with self.subTest(peer=peer):
                    self.assert_gets(self.fetch(f"{torrent.magnet()}&x.pe=nobody.invalid:1&x.pe={peer}"), torrent)

    def test_the_web_seeds_of_a_link_are_asked(self):
        torrent = Torrent(self.id(), 2 * MIB, is_private=False)
        files = self.folder("web")
        torrent.write(files)

        class MetadataAlone(Metadata):
            def introduce(self, wire):
                """It has no data."""
                wire.say_extensions({"ut_metadata": self.number}, metadata_size=self.size())
                wire.say(raw_peer.HAVE_NONE)

        with MetadataAlone(torrent) as peer, web_seeds.WebSeed(files) as seed:
            address = "{}:{}".format(*peer.address)
            program = self.fetch(f"{torrent.magnet()}&x.pe={address}&ws={urllib.parse.quote(seed.url, safe='')}")
            self.assert_gets(program, torrent, 120)
            self.assertTrue(seed.asked)

    def test_the_files_of_a_link_are_fetched_unless_others_are_named(self):
        """Each file begins a piece, so that no other file is made for a piece's sake."""
        size = 2 * 65_536
        torrent = Torrent(self.id(), files={("a",): size, ("b",): size, ("c",): size, ("d",): size}, is_private=False)
        with Metadata(torrent) as seeder:
            link = torrent.magnet() + "&x.pe={}:{}".format(*seeder.address)
            for selection, flags, expected in (("1,3", [], "bd"), ("0-1", ["--files", "2"], "c"), ("2", [], "c")):
                with self.subTest(selection=selection, flags=flags):
                    program = self.fetch(f"{link}&so={selection}", *flags)
                    self.assertEqual(program.wait(60), 0, program.words)
                    found = sorted(path.name for path in (program.folder / torrent.name).iterdir())
                    self.assertEqual("".join(found), expected)

    def test_files_that_the_torrent_does_not_have_are_no_reason_to_fetch_nothing(self):
        torrent = Torrent(self.id(), files={("a",): 50_000, ("b",): 50_000}, is_private=False)
        with Metadata(torrent) as seeder:
            link = torrent.magnet() + "&x.pe={}:{}".format(*seeder.address)
            for source, flags in ((f"{link}&so=7", []), (link, ["--files", "7"]),
                                  (self.torrent_file(torrent), ["--files", "7"])):
                program = self.fetch(source, *flags)
                self.assertEqual(program.wait(60), FAILED, program.words)
                self.assertIn("no file 7; its files are 0 to 1", program.words)
        program = self.fetch(f"{link}&so=x")
        self.assertEqual(program.wait(20), FAILED, program.words)
        self.assertIn("so=", program.words)


class FakeTracker:
    """An HTTP tracker that gives a `tracker id` and writes down what it is asked; use it in a `with`."""

    def __init__(self, *trackers_ids):
        self.asked, names = [], list(trackers_ids)
        tracker = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                query = urllib.parse.parse_qs(self.path.partition("?")[2], encoding="latin-1")
                tracker.asked.append({key: values[0] for key, values in query.items()})
                name = {"tracker id": names.pop(0)} if names else {}
                body = encode({"interval": 1800, "complete": 0, "incomplete": 1, "peers": b"", **name})
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:{}/announce".format(self._server.server_address[1])

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


class Manners(PeerTest):

    def test_a_tracker_over_http_hears_key_and_tracker_id(self):
        torrent = Torrent(self.id(), MIB, is_private=False)
        with FakeTracker(b"you are \xff 7") as tracker:
            seeder = self.seed(torrent, source=self.torrent_file(torrent, tracker.url), trackers=())
            wait_until(lambda: tracker.asked, 20, "the tracker is asked")
            seeder.signal(signal.SIGINT)
            self.assertEqual(seeder.wait(20), 0, seeder.words)
            first, last = tracker.asked[0], tracker.asked[-1]
            self.assertEqual((first["event"], last["event"]), ("started", "stopped"))
            self.assertRegex(first["key"], "^[0-9a-f]{8}$")
            self.assertEqual(first["key"], last["key"])
            self.assertNotIn("trackerid", first)
            self.assertEqual(last["trackerid"], "you are \xff 7")
            self.assertEqual(first["peer_id"][:8], "-SW0100-")

    def test_what_is_not_asked_is_told(self):
        torrent = Torrent(self.id(), MIB, is_private=False)
        source = self.torrent_file(torrent, "https://tracker.example/announce",
                                   **{"url-list": ["https://mirror.example/", "ftp://mirror.example/"]})
        for flags in ([], ["--json"]):
            program = self.get(torrent, (), *flags, source=source, trackers=())
            wait_until(lambda: program.words.count("cannot be asked") == 3, 20, lambda: program.words)
            self.assert_runs(program)
            program.kill()
        told = [event for event in events_in(program.words) if event["event"] == "unusable"]
        self.assertEqual([event["url"] for event in told],
                         ["https://tracker.example/announce", "https://mirror.example/", "ftp://mirror.example/"])
        for event in told[:2]:
            self.assertIn("HTTPS is not spoken", event["reason"])

    def test_callers_wait_while_the_disk_is_looked_at(self):
        """A gigabyte of zeros takes a second to be hashed: whoever calls meanwhile is answered then."""
        folder, file = self.folder("zeros"), self.directory / "zeros.torrent"
        with open(folder / "zeros.bin", "wb") as data:
            data.truncate(1 << 30)
        made = self.run_program("torrent", "create", folder / "zeros.bin", "--output", file, "--json", within=120)
        self.assertEqual(made.status, 0, made.words)
        info_hash = bytes.fromhex(made.words.partition('"infoHash" : "')[2][:40])
        port = free_port()
        program = self.program("seed", file, "--path", folder, "--no-tracker", "--recheck", "--json", "--listen",
                               f"127.0.0.1:{port}")
        with Wire.dial(port) as caller, Wire.dial(port) as patient:
            # One says all at once, the other its peer id only once it has our handshake.
            hello = raw_peer.handshake(info_hash, patient.peer_id)
            patient.raw(hello[:48])
            caller.raw(raw_peer.handshake(info_hash, caller.peer_id))
            caller.say(raw_peer.INTERESTED)
            self.assertFalse([event for event in events_in(program.words) if event["event"] == "checked"],
                             "it was too fast for this test")
            self.assertEqual(caller.hear_handshake(20)[1], info_hash)
            patient.hear_handshake(20)
            patient.raw(hello[48:])
            for wire in (caller, patient):
                wait_until(lambda: wire.listen(0.2) is not None and {number for number, _ in wire.seen}
                           & {HAVE_ALL, BITFIELD}, 10, "it says what it has")
            wait_until(lambda: caller.listen(0.2) is not None and (raw_peer.UNCHOKE, b"") in caller.seen, 20,
                       "what was said meanwhile has been heard")

    def test_an_empty_file_that_cannot_be_made_is_told_and_made_later(self):
        torrent = Torrent(self.id(), files={("data",): 100_000, ("empty",): 0}, is_private=False)
        folder = self.folder("downloader")
        (folder / torrent.name / "empty").mkdir(parents=True)
        with Metadata(torrent) as seeder:
            program = self.get(torrent, [seeder], "--json")
            wait_until(lambda: [event for event in events_in(program.words) if event["event"] == "completed"], 30,
                       lambda: program.words)
            wait_until(lambda: "waiting for the disk" in program.words, 20, lambda: program.words)
            self.assert_runs(program)
            trouble, = [event for event in events_in(program.words) if event["event"] == "diskTrouble"]
            self.assertIn("empty", trouble["reason"])
            (folder / torrent.name / "empty").rmdir()
            self.assert_gets(program, torrent, 30)

    def test_a_record_that_somebody_takes_away_is_made_anew(self):
        torrent = Torrent(self.id(), 4 * MIB, is_private=False)
        seeder = self.seed(torrent, "--max-up", MIB)
        program = self.get(torrent, [self.address_of(seeder)], "--seed", "--json")
        record = program.folder / f".{torrent.name}.resume"
        wait_until(lambda: len([event for event in events_in(program.words) if event["event"] == "piece"]) > 5, 30,
                   lambda: program.words)
        record.unlink()
        wait_until(lambda: '"verified"' in program.words, 60, lambda: program.words)
        wait_until(record.exists, 10, "what came later is noted")

    def address_of(self, program):
        class Place:
            address = ("127.0.0.1", program.port)
        return Place


if __name__ == "__main__":
    unittest.main()
