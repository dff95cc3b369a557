"""Torrent files at the consoles of three trackers that act as one: uploaded at one, the same bytes at all, whoever dies
meanwhile; and files that are no torrents, too large, or never come to an end.
"""

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import threading
import time

import metainfo
from consoles import ThreeTrackers
from serving import require_tracker, wait_until

setUpModule = require_tracker

MOST = 8 << 20
PIECE_LENGTH = 16_384
FORGOTTEN = 90
"""Seconds within which an upload that nobody goes on with is forgotten: a minute, and what it takes to notice."""


def info(name=b"one.iso", pieces=1, seed=1, **others):
    return {"length": pieces * PIECE_LENGTH, "name": name, "piece length": PIECE_LENGTH,
            "pieces": random.Random(seed).randbytes(20 * pieces), **others}


def torrent(**options):
    """A .torrent file and its info hash."""
    about = info(**options)
    return metainfo.encode({"info": about}), hashlib.sha1(metainfo.encode(about)).hexdigest()


def sized(size, seed=1):
    """A .torrent file of so many bytes, and its info hash."""
    about = info(pieces=(size - 1000) // 20, seed=seed)
    for padding in (800, 900, 1000):
        rest = size - len(metainfo.encode({"comment": b"c" * padding, "info": about})) + padding
        whole = metainfo.encode({"comment": b"c" * rest, "info": about})
        if len(whole) == size:
            return whole, hashlib.sha1(metainfo.encode(about)).hexdigest()
    raise AssertionError(f"no torrent has {size} bytes")


class UploadTest(ThreeTrackers):

    def upload(self, number, file, status=201, **options):
        answer = self.root(number).ask("POST", "torrents", file, **options)
        self.assertEqual(answer.status, status, answer)
        return answer

    def wait_for_file(self, info_hash, file, *among):
        """Waits until all give back the very bytes."""
        def differ():
            answers = {number: self.root(number).get(f"torrents/{info_hash}/file") for number in among or self.places}
            return {number: answer for number, answer in answers.items() if (answer.status, answer.content) != (200, file)}
        wait_until(lambda: not differ(), 15, lambda: f"the file at all trackers: {differ()}")

    def names(self, number):
        return [one["name"] for one in self.root(number).get("torrents").json["torrents"]]

    def cost(self, number):
        """Bytes of memory of a tracker, and the most that there ever were."""
        return self.trackers[number].memory()


class Uploads(UploadTest):

    def test_a_file_is_the_same_everywhere_after_each_restart_until_it_is_removed(self):
        file, info_hash = torrent(pieces=5_000)
        answer = self.upload(1, file)
        self.assertEqual(answer.json["infoHash"], info_hash)
        self.wait_for_file(info_hash, file)
        self.assertEqual(self.upload(2, file, status=200).json["infoHash"], info_hash)
        self.assertEqual(self.root(3).ask("POST", "torrents", file, {"If-None-Match": "*"}).status, 412)
        for number in self.places:
            described = self.root(number).get(f"torrents/{info_hash}")
            self.assertEqual(described.json["files"], [{"path": "one.iso", "byteCount": 5_000 * PIECE_LENGTH}])
            self.assertEqual((described.json["hasFile"], described.json["origin"]), (True, "console"))
            self.assertIn(f"urn:btih:{info_hash}", described.json["magnet"])
        master = self.wait_for_master()
        self.trackers[master].kill()
        self.wait_for_master(*(number for number in self.places if number != master))
        self.wait_for_file(info_hash, file, *(number for number in self.places if number != master))
        self.begin(master)
        self.wait_for_master()
        for number in self.places:
            self.restart(number)
            self.wait_for_master()
        for number in self.places:
            self.trackers[number].stop()
        for number in self.places:
            self.begin(number)
        self.wait_for_master()
        self.wait_for_file(info_hash, file)
        tag = self.root(2).get(f"torrents/{info_hash}/file").headers["ETag"]
        self.assertEqual(self.root(1).ask("DELETE", f"torrents/{info_hash}", headers={"If-Match": '"1"'}).status, 412)
        self.assertEqual(self.root(1).ask("DELETE", f"torrents/{info_hash}", headers={"If-Match": tag}).status, 200)
        for number in self.places:
            wait_until(lambda: self.root(number).get(f"torrents/{info_hash}/file").status == 404, 10, "it is gone")
            self.assertEqual(self.root(number).get(f"torrents/{info_hash}").status, 404)
            self.assertEqual(self.root(number).ask("DELETE", f"torrents/{info_hash}").status, 404)

    def test_the_master_may_die_during_an_upload(self):
        master = self.wait_for_master()
        at = next(number for number in self.places if number != master)
        file, info_hash = sized(6 << 20)
        told = []
        thread = threading.Thread(target=lambda: told.append(self.root(at).ask("POST", "torrents", file)))
        before = self.root(at).get("cluster").json["commitIndex"]
        thread.start()
        # In the middle of it: some parts are decided, not all.
        wait_until(lambda: self.root(at).get("cluster").json["commitIndex"] >= before + 20, 20, "the upload has begun")
        self.trackers[master].kill()
        self.assertEqual(told, [], "the master died too late to show anything")
        thread.join()
        self.assertEqual(told[0].status, 201, told)
        self.wait_for_file(info_hash, file, *(number for number in self.places if number != master))
        self.begin(master)
        self.wait_for_master()
        self.wait_for_file(info_hash, file)

    def test_a_newcomer_gets_all_files(self):
        files = dict(torrent(pieces=number * 500, seed=number) for number in range(1, 8))
        for number, file in enumerate(files):
            self.upload(1 + number % 3, file)
        master = self.wait_for_master()
        new = next(number for number in self.places if number != master)
        self.trackers[new].kill()
        shutil.rmtree(self.places[new].data)
        self.begin(new)
        self.wait_for_master()
        for file, info_hash in files.items():
            self.wait_for_file(info_hash, file, new)
        self.assertEqual(self.root(new).get("torrents").json["total"], 7)


class ClassicUploads(Uploads):
    profile = ("--profile", "classic")


class Sizes(UploadTest):

    def test_8_MiB_and_no_byte_more(self):
        file, info_hash = sized(MOST)
        self.upload(1, file)
        self.wait_for_file(info_hash, file)
        larger, other = sized(MOST + 1, seed=2)
        told = self.raw(2, f"Content-Length: {len(larger)}\r\n", larger)
        self.assertIn(b" 413 ", told.split(b"\r\n")[0])
        self.assertIn(f"{MOST}".encode(), told)
        self.assertEqual(self.root(1).get(f"torrents/{other}").status, 404)

    def raw(self, number, fields, body, pause=0.0):
        """What a tracker says to a body, sent as far as it lets."""
        with socket.create_connection(("127.0.0.1", self.places[number].console), 60) as connection:
            connection.sendall(f"POST /api/v1/torrents HTTP/1.1\r\nHost: localhost\r\n"
                               f"Content-Type: application/x-bittorrent\r\n{fields}\r\n".encode())
            with contextlib.suppress(OSError):
                for at in range(0, len(body), 1 << 16):
                    connection.sendall(body[at:at + (1 << 16)])
                    time.sleep(pause)
            told = b""
            with contextlib.suppress(OSError):
                while more := connection.recv(1 << 16):
                    told += more
        return told

    def test_50_MB_are_refused_and_cost_nothing(self):
        before = self.cost(2)[1]
        body = bytes(50_000_000)
        for fields, sent in [("Content-Length: 50000000\r\n", body), ("Content-Length: 99999999999999999999\r\n", b""),
                             ("Transfer-Encoding: chunked\r\n", b"2faf080\r\n" + body + b"\r\n0\r\n\r\n")]:
            told = self.raw(2, fields, sent)
            self.assertRegex(told.split(b"\r\n")[0], rb"^HTTP/1.1 4(13|00) ", fields)
        more = self.cost(2)[1] - before
        print(f"the refusal of 50 MB, twice, cost {more / 1e6:.1f} MB of memory at most")
        self.assertLess(more, 40 << 20)
        self.assertEqual(self.root(2).get("status").status, 200)

    def test_lengths_that_lie_get_no_further(self):
        for fields, body in [("Content-Length: -1\r\n", b""), ("Content-Length: 5\r\nContent-Length: 6\r\n", b"d3:foo"),
                             ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n"),
                             ("Transfer-Encoding: chunked\r\n", b"zzz\r\n"),
                             ("Transfer-Encoding: chunked\r\n", b"fffffffffffffffff\r\n"),
                             ("Transfer-Encoding: gzip\r\n", b"x"), ("Content-Length: 0x5\r\n", b"d3:foo")]:
            told = self.raw(2, fields, body)
            self.assertRegex(told.split(b"\r\n")[0] or b"HTTP/1.1 400 ", rb"^HTTP/1.1 4\d\d ", fields)
            self.assertLessEqual(told.count(b"HTTP/1.1"), 1, fields)
        self.assertEqual(self.root(2).get("torrents").json["total"], 0)


class Malformed(UploadTest):

    def refused(self, file, what):
        answer = self.root(2).ask("POST", "torrents", file)
        self.assertEqual(answer.status, 400, f"{what}: {answer}")
        self.assertGreater(len(answer.error), 10, what)
        return answer.error

    def test_what_is_no_torrent_is_refused_in_words(self):
        good, _ = torrent(pieces=2)
        for end in range(0, len(good), 3):
            if end:
                self.refused(good[:end], f"cut after {end} bytes")
        encode = metainfo.encode
        hostile = [
            b"l" * 1_000_000, b"d1:a" * 500_000, b"d" * MOST, b"l" * (MOST // 2) + b"e" * (MOST // 2),
            b"d4:info" * 100_000, b"i" + b"9" * 1_000_000 + b"e", b"99999999999999999999:x", b"4294967296:x",
            b"9223372036854775807:x", b"-1:x", b"i-0e", b"i01e", b"ie", b"i--1e", b"", b"\x00", b"de", b"le", b"4:spam",
            b"d4:infodee", b"d4:infolee", b"d4:infoi1ee", b"d4:info4:spame", b"x" + good, good[1:],
            b"<html>", b"PK\x03\x04" + bytes(100), os.urandom(10_000), b"d" + b"0:0:" * 100_000 + b"e",
            b"d" + b"1:ai1e" * 1000 + b"e",
        ]
        for file in hostile:
            if file:
                self.refused(file, file[:40])
        whole = info(pieces=2)
        wrong = [{"length": -1}, {"length": "x"}, {"length": 2 ** 63}, {"length": 0}, {"name": 5}, {"name": b""},
                 {"piece length": 0}, {"piece length": -1}, {"piece length": 2 ** 62}, {"pieces": b"x" * 19},
                 {"pieces": 5}, {"pieces": b""}, {"files": []}, {"length": 10 ** 30}]
        for change in wrong:
            self.refused(encode({"info": {**whole, **change}}), change)
        for key in whole:
            self.refused(encode({"info": {name: value for name, value in whole.items() if name != key}}), f"no {key}")
        several = {name: value for name, value in whole.items() if name != "length"}
        for files in [[{"length": 2 ** 62, "path": [b"a"]}] * 3, [{"length": 1}], [{"path": [b"a"]}], [5], [[]],
                      [{"length": 1, "path": []}], [{"length": 1, "path": b"a"}], [{"length": -1, "path": [b"a"]}]]:
            self.refused(encode({"info": {**several, "files": files}}), files)
        self.assertEqual(self.root(1).get("torrents").json["total"], 0)

    def test_bytes_behind_the_end_are_refused_and_told_where(self):
        good, info_hash = torrent(pieces=2)
        for junk in [b"\n", b"e", b"x" * 100, bytes(50_000), good]:
            told = self.refused(good + junk, f"a torrent and {len(junk)} bytes")
            rest = "one more byte follows" if len(junk) == 1 else f"{len(junk)} more bytes follow"
            self.assertIn(f"ends at byte {len(good)}, and {rest}", told)
        self.assertEqual(self.root(1).get(f"torrents/{info_hash}").status, 404)
        self.upload(2, good)

    def test_flipped_bits_are_a_torrent_or_refused(self):
        good, _ = torrent(pieces=2)
        rng, statuses = random.Random(13), {}
        for _ in range(300):
            file = bytearray(good)
            for _ in range(rng.randint(1, 4)):
                file[rng.randrange(len(file))] ^= 1 << rng.randrange(8)
            answer = self.root(1).ask("POST", "torrents", bytes(file))
            statuses[answer.status] = statuses.get(answer.status, 0) + 1
            self.assertIn(answer.status, (200, 201, 400), f"{bytes(file)!r}: {answer}")
        self.assertTrue(statuses.get(400) and statuses.get(201), statuses)
        self.assertEqual(self.root(3).get("torrents").status, 200)

    def test_names_are_text_and_lead_nowhere(self):
        names = [b"<img src=x onerror=alert(1)>.iso", "invoice\u202efdp.exe".encode(), b"a\"b'c&d", "ä\u200bö".encode(),
                 b"x\x00y", b"\xff\xfe", b"a\nb\r\nSet-Cookie: x=1", b"n" * 600, ("é" * 400).encode()]
        for seed, name in enumerate(names, 10):
            file, info_hash = torrent(name=name, seed=seed)
            answer = self.root(1).ask("POST", "torrents", file)
            self.assertIn(answer.status, (201, 400), f"{name}: {answer}")
            if answer.status == 400:
                self.assertTrue(answer.error)
                continue
            self.wait_for_file(info_hash, file)
            for number in self.places:
                for path in [f"torrents/{info_hash}", "torrents", f"torrents/{info_hash}/file", f"swarms/{info_hash}"]:
                    told = self.root(number).get(path)
                    self.assertEqual(told.status, 200, f"{name} {path}: {told}")
                    self.assertEqual(told.headers["X-Content-Type-Options"], "nosniff")
                    self.assertNotIn("html", told.headers["Content-Type"])
                    self.assertNotIn("Set-Cookie", told.headers)
                    if path.endswith("/file"):
                        self.assertEqual(
                            told.headers["Content-Disposition"], f'attachment; filename="{info_hash}.torrent"')
                    else:
                        told.content.decode()  # UTF-8, whatever the name was.
                        self.assertTrue(told.json)
        for path in ["../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%00", "x", "0" * 39, "0" * 41, "g" * 40,
                     "%2e%2e", "0" * 40 + "%2f.."]:
            self.assertIn(self.root(1).get(f"torrents/{path}/file").status, (400, 404), path)
        # Of several files, whose paths climb.
        several = {name: value for name, value in info(seed=99).items() if name != "length"}
        for path in [[b"..", b"..", b"etc", b"passwd"], [b"/etc/passwd"], [b"a", b"", b"b"], [b"a/../../b"], [b"."],
                     [b"C:\\windows"], ["\u202egpj.exe".encode()]]:
            file = metainfo.encode({"info": {**several, "files": [{"length": PIECE_LENGTH, "path": path}]}})
            answer = self.root(1).ask("POST", "torrents", file)
            self.assertIn(answer.status, (200, 201, 400), f"{path}: {answer}")
            if answer.status != 400:
                for part in answer.json["files"][0]["path"].split("/"):
                    self.assertNotIn(part, ("..", ".", ""), f"{path} is shown as {answer.json['files']}")
                self.assertNotIn("\u202e", answer.content.decode())


class Unfinished(UploadTest):

    def begin_upload(self, number, file, share=0.5):
        """A client that sends a part of a file, and waits."""
        connection = socket.create_connection(("127.0.0.1", self.places[number].console), 30)
        connection.sendall(f"POST /api/v1/torrents HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(file)}\r\n"
                           f"Content-Type: application/x-bittorrent\r\n\r\n".encode())
        connection.sendall(file[:int(len(file) * share)])
        return connection

    def test_clients_that_die_leave_nothing(self):
        files = [sized(1 << 20, seed) for seed in range(8)]
        # The first entries of a cluster are on their way when it begins to serve.
        time.sleep(3)
        before = {number: self.root(number).get("cluster").json["digest"] for number in self.places}
        for seed, (file, _) in enumerate(files):
            self.begin_upload(1 + seed % 3, file).close()
        for number in self.places:
            self.assertEqual(self.root(number).get("torrents").json["total"], 0)
        self.assertEqual(before, {number: self.root(number).get("cluster").json["digest"] for number in self.places})
        for seed, (file, info_hash) in enumerate(files):
            self.upload(1 + seed % 3, file)
        for file, info_hash in files:
            self.wait_for_file(info_hash, file)

    def test_a_tracker_that_dies_with_its_uploads_leaves_nothing_for_long(self):
        """Eight uploads are under way in the log when their trackers die; then there is room for no other, until a
        minute has passed."""
        master = self.wait_for_master()
        other, witness = (number for number in self.places if number != master)
        begun = 0
        for _ in range(2):
            files = [sized(7 << 20, seed=100 + begun + number)[0] for number in range(4)]
            before = self.root(witness).get("cluster").json["commitIndex"]
            threads = [threading.Thread(target=self.give_up, args=(other, file)) for file in files]
            for thread in threads:
                thread.start()
            wait_until(lambda: self.root(witness).get("cluster").json["commitIndex"] >= before + 30, 20, "they have begun")
            self.trackers[other].kill()
            for thread in threads:
                thread.join()
            begun += 4
            self.begin(other)
            self.wait_for_master()
        file, info_hash = torrent()
        begin, statuses = time.monotonic(), []
        while True:
            answer = self.root(witness).ask("POST", "torrents", file)
            statuses.append(answer.status)
            if answer.status == 201 or time.monotonic() - begin > FORGOTTEN:
                break
            self.assertIn(answer.status, (409, 503), answer)
            self.assertTrue(answer.error)
            time.sleep(1)
        took = time.monotonic() - begin
        print(f"after eight uploads whose tracker died: {statuses.count(409)} refusals, room again after {took:.0f} s")
        self.assertEqual(statuses[-1], 201, statuses)
        self.wait_for_file(info_hash, file)
        self.assertEqual(self.names(witness), ["one.iso"], "what was not whole is not shown")

    def give_up(self, number, file):
        with contextlib.suppress(OSError, Exception):
            self.root(number).ask("POST", "torrents", file)

    def test_clients_that_send_slowly_hold_up_their_own_tracker_only(self):
        held = [self.begin_upload(1, bytes(MOST), share=0.01) for _ in range(8)]
        try:
            file, info_hash = torrent()
            self.assertIn(self.root(1).get("torrents").status, (200,))
            self.upload(2, file)
            self.wait_for_file(info_hash, file)
            small = self.root(1).ask("POST", "torrents", file)
            self.assertEqual(small.status, 200, "a small file waits for none")
        finally:
            for connection in held:
                connection.close()


class Listed(UploadTest):
    """What is in the directory of torrents of all three trackers."""

    limits = ()

    def setUp(self):
        self.torrents = self.directory / "torrents"
        self.torrents.mkdir()
        self.extra = ("--torrents", self.torrents, *self.limits)
        self.fill()
        super().setUp()

    def fill(self):
        self.files = dict(torrent(name=b"%d.iso" % number, pieces=number * 2_000, seed=number) for number in range(1, 4))
        for file, info_hash in self.files.items():
            (self.torrents / f"{info_hash}.torrent").write_bytes(file)

    def read_again(self):
        """The master reads its directory once more."""
        master = self.wait_for_master()
        before = self.trackers[master].words.count("torrents are registered")
        self.trackers[master].signal(signal.SIGHUP)
        wait_until(lambda: self.trackers[master].words.count("torrents are registered") > before, 10,
                   lambda: self.trackers[master].words)

    def wait_until_gone(self, info_hash):
        for number in self.places:
            wait_until(lambda: self.root(number).get(f"torrents/{info_hash}").status == 404, 10, "it is gone")
            self.assertEqual(self.root(number).get(f"torrents/{info_hash}/file").status, 404)

    def origins(self, number):
        return {one["name"]: (one["origin"], one["hasFile"])
                for one in self.root(number).get("torrents").json["torrents"]}


class Directory(Listed):

    def test_files_of_the_directory_are_at_all_trackers_until_they_leave_it(self):
        for file, info_hash in self.files.items():
            self.wait_for_file(info_hash, file)
        for number in self.places:
            wait_until(lambda: set(self.origins(number).values()) == {("file", True)}, 10,
                       lambda: self.origins(number))
        (gone, first), (_, second), _ = self.files.items()
        refused = self.root(2).ask("DELETE", f"torrents/{first}")
        self.assertEqual(refused.status, 409)
        self.assertIn("directory", refused.error)

        own, hash_of_own = torrent(name=b"own.iso", seed=50)
        self.upload(2, own)
        (self.torrents / f"{first}.torrent").unlink()
        # Without its bytes being those of the directory, the torrent is the same.
        other = metainfo.encode({"comment": b"another", "info": info(name=b"2.iso", pieces=4_000, seed=2)})
        (self.torrents / f"{second}.torrent").write_bytes(other)
        self.read_again()
        self.wait_until_gone(first)
        self.wait_for_file(second, other)
        self.wait_for_file(hash_of_own, own)

        # A restart of all, with the same directory, says the same.
        for number in self.places:
            self.restart(number)
            self.wait_for_master()
        self.wait_for_file(second, other)
        self.wait_for_file(hash_of_own, own)
        self.assertEqual(self.root(1).get("torrents").json["total"], 3)
        for file in self.torrents.iterdir():
            file.unlink()
        self.read_again()
        self.wait_until_gone(second)
        self.wait_for_file(hash_of_own, own)
        wait_until(lambda: self.origins(3) == {"own.iso": ("console", True)}, 10, lambda: self.origins(3))
        self.assertEqual(gone, next(iter(self.files)))

    def test_an_upload_wins_over_the_directory_until_it_is_removed(self):
        file, info_hash = next(iter(self.files.items()))
        self.wait_for_file(info_hash, file)
        own = metainfo.encode({"comment": b"my own", "info": info(name=b"1.iso", pieces=2_000, seed=1)})
        self.assertEqual(self.root(1).ask("POST", "torrents", own, {"If-None-Match": "*"}).status, 412)
        self.upload(1, own, status=200)
        self.wait_for_file(info_hash, own)
        for number in self.places:
            self.assertEqual(self.root(number).get(f"torrents/{info_hash}").json["origin"], "console")
        self.read_again()
        time.sleep(1)
        self.wait_for_file(info_hash, own)
        self.assertEqual(self.root(3).ask("DELETE", f"torrents/{info_hash}").status, 200)
        described = self.root(3).get(f"torrents/{info_hash}").json
        self.assertEqual((described["origin"], described["hasFile"]), ("file", False))
        self.read_again()
        self.wait_for_file(info_hash, file)

    def test_a_directory_that_cannot_be_read_takes_nothing_away(self):
        for file, info_hash in self.files.items():
            self.wait_for_file(info_hash, file)
        self.torrents.rename(self.directory / "elsewhere")
        master = self.wait_for_master()
        self.trackers[master].signal(signal.SIGHUP)
        wait_until(lambda: "the torrents that are registered stay" in self.trackers[master].words, 10,
                   lambda: self.trackers[master].words)
        for file, info_hash in self.files.items():
            self.wait_for_file(info_hash, file)


class Limits(Listed):
    limits = ("--limit-torrent-file-bytes", 100_000, "--limit-torrent-total-bytes", 250_000)

    def test_what_does_not_fit_keeps_its_name_and_says_why(self):
        # 40, 80 and 120 kB: the last is too large.
        *small, (_, large) = self.files.items()
        for file, info_hash in small:
            self.wait_for_file(info_hash, file)
        master = self.wait_for_master()
        for number in self.places:
            described = self.root(number).get(f"torrents/{large}").json
            self.assertEqual((described["name"], described["origin"], described["hasFile"]), ("3.iso", "file", False))
            self.assertIn("at most 100000", described["whyNoFile"])
            self.assertEqual(self.root(number).get(f"torrents/{large}/file").status, 404)
            self.assertEqual(self.root(number).get("").json["torrentFileByteCount"], 100_000)
        self.assertIn(f"{large}.torrent", self.trackers[master].words)
        told = self.root(2).ask("POST", "torrents", sized(100_001)[0])
        self.assertEqual(told.status, 413)
        self.assertIn("100000", told.error)
        # All together: 120 kB are there, and of two more only one fits.
        more = [torrent(name=b"more-%d.iso" % number, pieces=4_000, seed=60 + number) for number in range(2)]
        for number, (file, info_hash) in enumerate(more):
            (self.torrents / f"x{number}.torrent").write_bytes(file)
        self.read_again()
        wait_until(lambda: "all torrent files together may have 250000 bytes" in self.trackers[master].words, 15,
                   lambda: self.trackers[master].words)
        self.wait_for_file(more[0][1], more[0][0])
        described = self.root(master).get(f"torrents/{more[1][1]}").json
        self.assertFalse(described["hasFile"])
        self.assertIn("250000", described["whyNoFile"])


class LargeDirectory(Listed):
    """Forty files of 500 kB: it takes some seconds until all trackers have them."""

    def fill(self):
        self.files = dict(sized(500_000, seed=number) for number in range(40))
        for number, file in enumerate(self.files):
            (self.torrents / f"{number:02}.torrent").write_bytes(file)

    def whole(self, number):
        return [one["hasFile"] for one in self.root(number).get("torrents?limit=100").json["torrents"]].count(True)

    def test_the_next_master_goes_on_where_one_has_died(self):
        master = self.wait_for_master()
        wait_until(lambda: self.whole(master) >= 2, 30, "some are there")
        self.trackers[master].kill()
        others = [number for number in self.places if number != master]
        self.wait_for_master(*others)
        self.assertLess(self.whole(others[0]), 40, "the master died too late to show anything")
        wait_until(lambda: self.whole(others[0]) == 40, 60, lambda: f"all are there: {self.whole(others[0])}")
        for file, info_hash in self.files.items():
            self.wait_for_file(info_hash, file, *others)
        self.begin(master)
        self.wait_for_master()
        wait_until(lambda: self.whole(master) == 40, 30, "the one that has come back has them")

    def test_a_stop_does_not_wait_for_them_and_announces_do_not_either(self):
        master = self.wait_for_master()
        before = self.whole(master)
        load = self.program("load", f"udp://127.0.0.1:{self.places[master].udp}", "--rate", 1000, "--seconds", 4,
                            "--warm-up", 0, "--patience", 15, "--json")
        load.wait(60)
        there = self.whole(master) - before
        self.assertGreater(there, 0, "nothing came meanwhile")
        report = json.loads(load.output)
        p99 = report["latencyMicroseconds"]["p99"]
        print(f"p99 of announces while {there} of 40 files of 500 kB come: {p99} µs, {report['lost']} lost")
        self.assertEqual(report["lost"], 0)
        self.assertLess(p99, 1_000_000)
        self.trackers[master].stop(within=5)


class Announces(UploadTest):

    def load(self):
        return self.program("load", f"udp://127.0.0.1:{self.places[1].udp}", "--rate", 2000, "--seconds", 6,
                            "--warm-up", 1, "--patience", 15, "--json")

    def test_they_do_not_wait_behind_an_upload(self):
        figures = []
        for number in range(2):
            load = self.load()
            time.sleep(2)
            if number:
                file, info_hash = sized(MOST)
                begin = time.monotonic()
                self.upload(1, file)
                took = time.monotonic() - begin
            load.wait(60)
            figures.append(json.loads(load.output))
        p99 = [report["latencyMicroseconds"]["p99"] for report in figures]
        print(f"p99 of announces: {p99[0]} µs, during an upload of 8 MiB that took {took:.1f} s: {p99[1]} µs")
        self.assertEqual([report["lost"] for report in figures], [0, 0])
        self.assertLess(p99[1], max(10 * p99[0], 1_000_000))
        self.wait_for_file(info_hash, file)
