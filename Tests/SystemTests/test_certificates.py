"""A broker's certificate: one that is good is taken, one that has expired is refused, and the reason is told."""

import os
import ssl
import socket
import subprocess
import threading

from serving import TrackerTest, free_port, require_tracker, wait_until

setUpModule = require_tracker

CONFIGURATION = """
[ca]
default_ca = d
[d]
database = index.txt
new_certs_dir = .
serial = serial
default_md = sha256
policy = p
x509_extensions = v
[p]
commonName = supplied
[v]
subjectAltName = IP:127.0.0.1
"""


class TLSListener:
    """A port that speaks TLS and keeps the first bytes that each client says."""

    def __init__(self, certificate, key):
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self.port, self.heard, self.handshakes = free_port(), [], 0
        self._socket = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        while True:
            try:
                raw, _ = self._socket.accept()
            except OSError:
                return
            self.handshakes += 1
            try:
                with self._context.wrap_socket(raw, server_side=True) as connection:
                    connection.settimeout(5)
                    self.heard.append(connection.recv(4096))
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()


class Certificates(TrackerTest):

    def sign(self, name, start, end):
        """A certificate for 127.0.0.1 that signs itself, good from one day to another."""
        directory = self.directory / name
        directory.mkdir()
        (directory / "ca.cnf").write_text(CONFIGURATION)
        (directory / "index.txt").touch()
        (directory / "serial").write_text("01\n")
        for command in (
                ["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-subj", "/CN=broker",
                 "-out", "request.pem"],
                ["openssl", "ca", "-batch", "-selfsign", "-notext", "-config", "ca.cnf", "-keyfile", "key.pem", "-in",
                 "request.pem", "-out", "certificate.pem", "-startdate", start, "-enddate", end]):
            subprocess.run(command, cwd=directory, check=True, capture_output=True)
        return directory / "certificate.pem", directory / "key.pem"

    def follow(self, listener, certificate):
        key = self.directory / "cluster.key"
        key.write_text("0123456789abcdef" * 4)
        os.chmod(key, 0o600)
        return self.start(self.place(), "--id", 1, "--bus", f"stomp+tls://127.0.0.1:{listener.port}?ca={certificate}",
                          "--cluster-key-file", key)

    def test_one_that_is_good_is_taken(self):
        certificate, key = self.sign("good", "20200101000000Z", "20490101000000Z")
        with TLSListener(certificate, key) as listener:
            tracker = self.follow(listener, certificate)
            wait_until(lambda: listener.heard, 20, lambda: tracker.words)
            self.assertTrue(listener.heard[0].startswith(b"CONNECT\n"), listener.heard)

    def test_one_that_has_expired_is_refused(self):
        certificate, key = self.sign("old", "20200101000000Z", "20200102000000Z")
        with TLSListener(certificate, key) as listener:
            tracker = self.follow(listener, certificate)
            wait_until(lambda: "its certificate has expired, or" in tracker.words, 20, lambda: tracker.words)
            wait_until(lambda: listener.handshakes > 1, 20, "it tries again")
            self.assertEqual([bytes for bytes in listener.heard if bytes], [], "not a word of the login")
            self.assertIsNone(tracker.status)
