"""The console over TLS: page, log-in and event stream come through; who speaks another language is let go at once, and
a certificate or key that will not do is named before anything is served.
"""

import contextlib
import http.client
import json
import os
import socket
import ssl
import subprocess
import time

from serving import TrackerTest, require_tracker, wait_until

setUpModule = require_tracker

TOKEN = "0123456789abcdef" * 2
PASSWORD = "correct horse battery"
SOON = 10
"""Seconds within which somebody who is refused knows it."""
IDLE = 25
"""Seconds after which somebody who says nothing is let go: twenty, and what it takes to notice."""


class TLSTest(TrackerTest):

    def certificate(self, name, key="rsa:2048"):
        """A certificate for 127.0.0.1 that signs itself, and its key."""
        directory = self.directory / name
        directory.mkdir()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", *key.split(" "), "-nodes", "-days", "2", "-subj", f"/CN={name}",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "certificate.pem"],
            cwd=directory, check=True, capture_output=True)
        return directory / "certificate.pem", directory / "key.pem"

    def flags(self, certificate, key):
        token = self.directory / "token"
        token.write_text(f"{TOKEN}\n")
        token.chmod(0o600)
        return ["--console-certificate-file", certificate, "--console-key-file", key, "--console-token-file", token]

    def serve_over_tls(self, certificate, key):
        self.place_of_it = self.place()
        self.trusted = certificate
        return self.serve(self.place_of_it, *self.flags(certificate, key))

    def context(self):
        return ssl.create_default_context(cafile=self.trusted)

    def raw(self):
        return socket.create_connection(("127.0.0.1", self.place_of_it.console), SOON)

    def connect(self, **options):
        return http.client.HTTPSConnection(
            "127.0.0.1", self.place_of_it.console, timeout=SOON, context=self.context(), **options)

    def ask(self, method, path, body=None, **fields):
        """What the console answers, over a connection of its own."""
        fields = {name.replace("_", "-"): value for name, value in fields.items()}
        if body is not None:
            fields["Content-Type"] = "application/json"
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), fields)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()


class Served(TLSTest):

    def test_page_log_in_and_event_stream(self):
        self.serve_over_tls(*self.certificate("console"))
        status, headers, page = self.ask("GET", "/")
        self.assertEqual(status, 200)
        self.assertIn(b"<!doctype html>", page[:100].lower())
        self.assertEqual(self.ask("GET", "/api/v1/status")[0], 401)
        bearer = f"Bearer {TOKEN}"
        status, _, told = self.ask("GET", "/api/v1/status", Authorization=bearer)
        self.assertEqual((status, json.loads(told)["node"]["role"]), (200, "master"))
        status, _, told = self.ask(
            "PUT", "/api/v1/users/anna", {"role": "admin", "password": PASSWORD}, Authorization=bearer)
        self.assertEqual(status, 201, told)

        origin = f"https://127.0.0.1:{self.place_of_it.console}"
        status, headers, told = self.ask(
            "POST", "/api/v1/sessions", {"name": "anna", "password": PASSWORD}, Origin=origin)
        self.assertEqual(status, 201, told)
        cookie, *attributes = headers["Set-Cookie"].split("; ")
        self.assertIn("Secure", attributes)
        self.assertIn("HttpOnly", attributes)
        self.assertEqual(self.ask("GET", "/api/v1/status", Cookie=cookie)[0], 200)

        with contextlib.closing(self.connect()) as connection:
            connection.request("GET", "/api/v1/events", headers={"Cookie": cookie})
            reply = connection.getresponse()
            self.assertEqual((reply.status, reply.headers["Content-Type"]), (200, "text/event-stream; charset=utf-8"))
            states, begin = 0, time.monotonic()
            while states < 3 and time.monotonic() - begin < 3 * SOON:
                states += reply.readline() == b"event: state\n"
            # One a second: what is told is on its way at once, and does not wait in a buffer.
            self.assertEqual(states, 3)
            self.assertLess(time.monotonic() - begin, SOON)

    def test_an_elliptic_key_and_a_chain_of_two_will_do(self):
        one, key = self.certificate("console", "ec -pkeyopt ec_paramgen_curve:prime256v1")
        other, _ = self.certificate("other")
        chain = self.directory / "chain.pem"
        chain.write_text(one.read_text() + other.read_text())
        self.serve_over_tls(chain, key)
        self.assertEqual(self.ask("GET", "/")[0], 200)

    def test_a_large_answer_and_a_large_body_come_whole(self):
        self.serve_over_tls(*self.certificate("console"))
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        body = b"d4:info" + b"x" * 5_000_000
        with contextlib.closing(self.connect()) as connection:
            connection.request(
                "POST", "/api/v1/torrents", body, {**bearer, "Content-Type": "application/x-bittorrent"})
            reply = connection.getresponse()
            self.assertEqual(reply.status, 400, "it was read, and is no torrent")
            self.assertIn(b"no torrent file", reply.read())
            # The same connection goes on.
            connection.request("GET", "/api/v1/openapi.yaml", headers=bearer)
            reply = connection.getresponse()
            self.assertGreater(len(reply.read()), 30_000)

    def test_a_stop_does_not_wait_for_the_event_stream(self):
        tracker = self.serve_over_tls(*self.certificate("console"))
        with contextlib.closing(self.connect()) as connection:
            connection.request("GET", "/api/v1/events", headers={"Authorization": f"Bearer {TOKEN}"})
            self.assertEqual(connection.getresponse().status, 200)
            # Nor for the client to say good-bye, as TLS would have it.
            tracker.stop(within=3)


class Refused(TLSTest):

    def end_of(self, connection, within=SOON):
        """All that the tracker says until it closes."""
        connection.settimeout(within)
        told = b""
        with contextlib.suppress(ConnectionError):
            while more := connection.recv(4096):
                told += more
        return told

    def test_plain_HTTP_and_junk_get_no_answer_and_do_not_hang(self):
        self.serve_over_tls(*self.certificate("console"))
        for said in (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"POST / HTTP/1.1\r\n",
                     b"\x16\x03\x01\xff\xff" + os.urandom(70_000), b"\x80\x2e\x01\x03\x01" + bytes(60), bytes(70_000)):
            with self.raw() as connection:
                with contextlib.suppress(ConnectionError):
                    connection.sendall(said)
                self.assertNotIn(b"HTTP/1", self.end_of(connection), said[:20])
        self.assertEqual(self.ask("GET", "/")[0], 200)

    def test_who_says_nothing_is_let_go_and_holds_up_nobody(self):
        self.serve_over_tls(*self.certificate("console"))
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(self.raw()) for _ in range(8)]
            silent[1].sendall(b"\x16\x03\x01\x02\x00")
            begin = time.monotonic()
            self.assertEqual(self.ask("GET", "/")[0], 200)
            self.assertLess(time.monotonic() - begin, 2)
            for connection in silent:
                self.assertEqual(self.end_of(connection, IDLE), b"")

    def test_a_client_of_old_is_refused(self):
        self.serve_over_tls(*self.certificate("console"))
        for version, is_taken in [(ssl.TLSVersion.TLSv1, False), (ssl.TLSVersion.TLSv1_1, False),
                                  (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)]:
            context = self.context()
            # Else the client itself would not say the words.
            context.set_ciphers("ALL:@SECLEVEL=0")
            context.minimum_version = context.maximum_version = version
            with self.raw() as connection:
                if is_taken:
                    with context.wrap_socket(connection, server_hostname="127.0.0.1") as secured:
                        self.assertEqual(secured.version(), version.name.replace("_", "."))
                    continue
                with self.assertRaises(ssl.SSLError) as refusal:
                    context.wrap_socket(connection, server_hostname="127.0.0.1")
                self.assertIn("PROTOCOL_VERSION", refusal.exception.reason, version)

    def test_a_client_that_does_not_know_the_certificate_says_so_and_the_tracker_goes_on(self):
        self.serve_over_tls(*self.certificate("console"))
        for _ in range(3):
            with self.raw() as connection, self.assertRaises(ssl.SSLCertVerificationError):
                ssl.create_default_context().wrap_socket(connection, server_hostname="127.0.0.1")
        self.assertEqual(self.ask("GET", "/")[0], 200)

    def test_files_that_will_not_do_are_named_before_anything_is_served(self):
        certificate, key = self.certificate("console")
        _, other_key = self.certificate("other")
        directory = self.directory
        empty, junk, half = directory / "empty.pem", directory / "junk.pem", directory / "half.pem"
        empty.touch()
        junk.write_text("-----BEGIN CERTIFICATE-----\nthis is none\n-----END CERTIFICATE-----\n")
        half.write_bytes(key.read_bytes()[:300])
        for chain, private, named in [
                (directory / "none.pem", key, "none.pem"), (certificate, directory / "none.pem", "none.pem"),
                (key, certificate, "key.pem"), (certificate, other_key, "other/key.pem"),
                (empty, key, "empty.pem"), (certificate, empty, "empty.pem"), (junk, key, "junk.pem"),
                (certificate, half, "half.pem"), (directory, key, str(directory)),
                (certificate, certificate, "certificate.pem")]:
            with self.subTest(chain=chain.name, key=private.name):
                place = self.place()
                tracker = self.start(place, *self.flags(chain, private))
                self.assertNotEqual(tracker.wait(20), 0, tracker.words)
                self.assertIn(f"{named} cannot be used", tracker.words)
                self.assertIn("the API", tracker.words)
                self.assertTrue(place.is_free())

    def test_one_without_the_other_is_an_error(self):
        certificate, key = self.certificate("console")
        for flag, file, lacking in [("certificate", certificate, "console.key-file"),
                                    ("key", key, "console.certificate-file")]:
            tracker = self.start(self.place(), f"--console-{flag}-file", file)
            self.assertNotEqual(tracker.wait(20), 0, tracker.words)
            self.assertIn(lacking, tracker.words)

    def test_the_command_line_says_that_it_speaks_no_TLS(self):
        self.serve_over_tls(*self.certificate("console"))
        port = self.place_of_it.console
        begin = time.monotonic()
        program = self.run_program("status", "--console", f"127.0.0.1:{port}")
        self.assertNotEqual(program.status, 0)
        self.assertLess(time.monotonic() - begin, SOON)
        self.assertIn("TLS", program.words)
