"""What one sender can take of a console, and what it leaves to the others: connections, streams, uploads; and what a
console says while its tracker is stopped.
"""

import contextlib
import http.client
import socket
import time

from consoles import Console, ThreeTrackers
from serving import TrackerTest, require_tracker, wait_until
from test_uploads import sized, torrent

setUpModule = require_tracker

LARGE = 1 << 20


class Connections(TrackerTest):

    def test_sockets_that_say_nothing_keep_nobody_out(self):
        tracker = self.serve()
        port = tracker.place.console
        stream = self.stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
        stream.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        # As many as the console takes, each address as many as it may have.
        for address in ("127.0.0.2", "127.0.0.3"):
            for _ in range(128):
                self.stack.enter_context(
                    socket.create_connection(("127.0.0.1", port), 10, source_address=(address, 0)))
        start = time.monotonic()
        for _ in range(3):
            answer = Console(port, source="127.0.0.4").ask("GET", "status", timeout=10)
            self.assertEqual(answer.status, 200)
        self.assertLess(time.monotonic() - start, 5)
        # Who is being answered has kept its place.
        seen, end = b"", time.monotonic() + 10
        while seen.count(b"event: state") < 5 and time.monotonic() < end:
            seen += stream.recv(65536)
        self.assertGreaterEqual(seen.count(b"event: state"), 5)

    def test_a_reader_of_HTTP_1_0_gets_a_stream_without_chunks(self):
        port = self.serve().place.console
        stream = self.stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
        stream.sendall(b"GET /api/v1/events HTTP/1.0\r\nHost: localhost\r\n\r\n")
        seen = b""
        while seen.count(b"event: state") < 2:
            got = stream.recv(65536)
            self.assertTrue(got, seen)
            seen += got
        head, body = seen.split(b"\r\n\r\n", 1)
        self.assertNotIn(b"transfer-encoding", head.lower())
        self.assertIn(b"connection: close", head.lower())
        self.assertTrue(body.startswith(b"retry: 1000\n\n"), body[:100])
        self.assertNotIn(b"\r", body)


class Shares(ThreeTrackers):

    def open_stream(self, session):
        connection = http.client.HTTPConnection("127.0.0.1", self.places[1].console, timeout=30)
        self.stack.callback(connection.close)
        connection.request("GET", "/api/v1/events", headers={"Cookie": f"{self.root(1).cookie_name}={session}"})
        return connection, connection.getresponse()

    def test_an_account_reads_eight_streams_and_the_others_still_theirs(self):
        self.make_admin()
        session = self.make("greedy", "viewer")
        held = []
        for _ in range(8):
            held.append(self.open_stream(session))
            self.assertEqual(held[-1][1].status, 200)
        _, refused = self.open_stream(session)
        self.assertEqual(refused.status, 429)
        self.assertEqual(refused.getheader("Retry-After"), "10")
        self.assertIn(b"greedy reads 8 streams of events already; close a page", refused.read())
        self.assertEqual(self.open_stream(self.admin)[1].status, 200)
        for part in reversed(held.pop()):
            part.close()

        def is_free():
            connection, reply = self.open_stream(session)
            if reply.status != 200:
                reply.close()
                connection.close()
                time.sleep(0.1)
            return reply.status == 200
        wait_until(is_free, 10, "the place of one that has gone is free")

    def begin_upload(self, session):
        connection = self.stack.enter_context(
            socket.create_connection(("127.0.0.1", self.places[1].console), 60))
        connection.sendall(
            f"POST /api/v1/torrents HTTP/1.1\r\nHost: localhost\r\nCookie: {self.root(1).cookie_name}={session}\r\n"
            f"Content-Type: application/x-bittorrent\r\nContent-Length: {LARGE}\r\n\r\nd".encode())
        return connection

    def test_slow_uploads_of_one_account_leave_room_and_end(self):
        self.make_admin()
        session = self.make("slow", "uploader")
        held = [self.begin_upload(session) for _ in range(2)]
        time.sleep(0.5)
        third = self.begin_upload(session)
        answer = third.recv(65536)
        self.assertTrue(answer.startswith(b"HTTP/1.1 429"), answer)
        file, info_hash = sized(LARGE)
        self.assertEqual(self.root(1).ask("POST", "torrents", file).status, 201)
        start = time.monotonic()
        for connection in held:
            with contextlib.suppress(OSError):
                connection.sendall(b"8")
            answer = connection.recv(65536)
            self.assertTrue(answer.startswith(b"HTTP/1.1 408"), answer)
            self.assertIn(b"the body comes too slowly", answer)
        self.assertLess(time.monotonic() - start, 25)
        self.assertEqual(self.console(1, session).ask("POST", "torrents", file).status, 200)


class Stopped(TrackerTest):

    def test_what_needs_the_node_is_refused_at_once_and_in_words(self):
        console = Console(self.serve().place.console)
        file, info_hash = torrent()
        self.assertEqual(console.ask("POST", "torrents", file).status, 201)
        self.assertEqual(console.get(f"swarms/{'0' * 40}").status, 404)
        name = console.get("cluster").json["name"]
        self.assertEqual(console.ask("POST", "node/stop", {"name": name}).status, 200)
        words = console.get("swarms").error
        for path in ("torrents", f"swarms/{info_hash}", f"swarms/{info_hash}/peers", f"swarms/{'0' * 40}",
                     f"torrents/{info_hash}", f"torrents/{info_hash}/file"):
            answer = console.get(path)
            self.assertEqual((answer.status, answer.error), (503, words), path)
        start = time.monotonic()
        answer = console.ask("POST", "torrents", file)
        self.assertEqual(answer.status, 503)
        self.assertIn("this tracker is stopped: start it", answer.error)
        self.assertEqual(console.ask("DELETE", f"torrents/{info_hash}").status, 503)
        self.assertLess(time.monotonic() - start, 5)
        self.assertEqual(console.ask("POST", "node/start", {}).status, 200)
        wait_until(lambda: console.get(f"swarms/{'0' * 40}").status == 404, 20, "it serves again")
