"""The API against its description: what trackers really answer, held against docs/openapi.yaml.

A cluster of three is asked by every path and method, in good order and in bad; a tracker with a token is asked with it
and without. Schemathesis, which makes requests up from the description, is a part of its own: it comes from no Debian
package, and is skipped where `make test-packages` has not put it into `.build/test-python`.
"""

import contextlib
import http.client
import itertools
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse

import cluster
import metainfo
import serving
from bep15 import Event
from description import FILE, Description
from namespaces import wait_until

HERE = pathlib.Path(__file__).resolve().parent
FUZZER = HERE.parents[1] / ".build" / "test-python" / "bin" / "schemathesis"
VALIDATOR = FUZZER.with_name("openapi-spec-validator")
UNFORCED = {503, 504}
"""Statuses that no test brings about: the tracker's logic does not answer, or not in time."""
UNKNOWN = "00" * 20
JSON = {"Content-Type": "application/json"}


def setUpModule():
    cluster.require_cluster()


def ask(host, port, method, target, body=None, headers=None):
    """(status, headers, body) of one request; `host` is one of namespaces, or None for this one."""
    headers = {**(JSON if body is not None else {}), **(headers or {})}
    body = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
    with host.entered() if host else contextlib.nullcontext():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        with contextlib.closing(connection):
            connection.request(method, target, body, headers)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()


def target(path, names=None, **query):
    """A path with its names filled in, and a query behind it."""
    filled = path
    for name, value in (names or {}).items():
        filled = filled.replace("{%s}" % name, urllib.parse.quote(str(value), safe=""))
    return filled + ("?" + urllib.parse.urlencode(query) if query else "")


class ClusterAPI(unittest.TestCase):
    """Three trackers over multicast, two registered torrents, one without a peer, and a swarm of no known name."""

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        directory = pathlib.Path(cls.stack.enter_context(tempfile.TemporaryDirectory()))
        cls.torrents = [metainfo.Torrent(1, 100_000), metainfo.Torrent(2, 1)]
        for torrent in cls.torrents:
            (directory / f"{torrent.name}.torrent").write_bytes(torrent.file("udp://tracker.example:6969/announce"))
        cls.trackers = cls.stack.enter_context(
            cluster.Cluster("multicast", flags=["--torrents", directory, "--cluster-name", "described"]))
        cls.busy, cls.lonely = (torrent.info_hash.hex() for torrent in cls.torrents)
        cls.stranger = "ab" * 20
        for port in range(7001, 7006):
            client = cls.trackers.client(cls.trackers.members[port % 3])
            client.peer_id = (b"-qB4520-" if port % 2 else b"no-client--.") + os.urandom(12)
            client.peer_id = client.peer_id[:20]
            client.announce(bytes.fromhex(cls.busy), port, left=port % 2 * 1000, downloaded=port,
                            event=Event.STARTED)
        client.announce(bytes.fromhex(cls.stranger), 7100, left=0, event=Event.STARTED)
        cls.trackers.wait_until_equal()
        # A list may be two seconds old.
        for member in cls.trackers.members:
            wait_until(lambda: json.loads(member.get("/api/v1/swarms"))["total"] == 2, 10, "the swarms are listed")

    def test_what_a_cluster_answers(self):
        """All in one test, for a cluster takes a while to start."""
        self.api = Description(FILE.read_text())
        self.seen = set()
        for part in [self.check_reads, self.check_pages, self.check_bad_questions, self.check_what_is_not_described,
                     self.check_strangers, self.check_a_page_that_is_known, self.check_events, self.check_cuts,
                     self.check_orders, self.check_a_stopped_node, self.check_the_end]:
            with self.subTest(part.__name__):
                part()
        # 401 is the affair of `TokenAPI`.
        described = {(one.name, status) for one in self.api.operations for status in one.statuses - UNFORCED - {401}}
        self.assertEqual(described - self.seen, set(), "described, and not seen")

    def ask(self, member, method, path, names=None, body=None, headers=None, status=None, **query):
        """Asks, and holds the answer against the description; returns what it brings."""
        operation = self.api.operation(method, path)
        got, fields, content = ask(member.host, cluster.CONSOLE, method, target(path, names, **query), body, headers)
        what = f"tracker {member.number}, {method} {target(path, names, **query)} {body}"
        try:
            value = operation.check(got, fields["Content-Type"], content)
        except AssertionError as problem:
            raise AssertionError(f"{what}: {problem}") from None
        if status is not None:
            self.assertEqual(got, status, f"{what}: {value}")
        self.seen.add((operation.name, got))
        return value

    def get(self, member, path, names=None, **query):
        return self.ask(member, "GET", path, names, status=200, **query)

    def check_reads(self):
        for member in self.trackers.members:
            wait_until(lambda: self.get(member, "/api/v1/status")["cluster"]["trackers"][2].get("report"), 20,
                       "the trackers have told of themselves")
            for operation in self.api.operations:
                if operation.method == "GET" and "{" not in operation.path and operation.path != "/api/v1/events":
                    self.get(member, operation.path)
            swarms = self.get(member, "/api/v1/swarms")["swarms"]
            self.assertEqual({one["infoHash"]: one["name"] for one in swarms},
                             {self.busy: self.torrents[0].name, self.stranger: None})
            torrents = self.get(member, "/api/v1/torrents")["torrents"]
            self.assertEqual([one["infoHash"] for one in torrents], [self.busy, self.lonely])
            self.assertIsNone(self.get(member, "/api/v1/swarms/{hash}", {"hash": self.stranger})["byteCount"])
            peers = self.get(member, "/api/v1/swarms/{hash}/peers", {"hash": self.busy})
            self.assertEqual(peers["total"], 5)
            self.assertEqual({one.get("client") for one in peers["peers"]}, {"qBittorrent 4.5.2", None})
            self.get(member, "/api/v1/swarms/{hash}", {"hash": self.lonely.upper()})
            self.get(member, "/api/v1/swarms/{hash}/peers", {"hash": self.lonely})
            self.get(member, "/console/{file}", {"file": "style.css"})

    def check_pages(self):
        member = self.trackers.members[0]
        lists = [("/api/v1/swarms", {}, "swarms", "infoHash"), ("/api/v1/torrents", {}, "torrents", "infoHash"),
                 ("/api/v1/swarms/{hash}/peers", {"hash": self.busy}, "peers", "address")]
        for path, names, key, identity in lists:
            operation = self.api.operation("GET", path)
            for sort, order in itertools.product(operation.choices("sort"), operation.choices("order")):
                whole = self.get(member, path, names, sort=sort, order=order, limit=500)
                self.assertNotIn("next", whole)
                found, more = [], {}
                while more is not None and len(found) <= whole["total"]:
                    page = self.get(member, path, names, sort=sort, order=order, limit=1, **more)
                    found += page[key]
                    more = {"after": page["next"]} if "next" in page else None
                self.assertEqual([one[identity] for one in found], [one[identity] for one in whole[key]], (path, sort))
        for path, key in [("/api/v1/swarms", "swarms"), ("/api/v1/torrents", "torrents")]:
            for text in [self.torrents[0].name.upper(), self.busy[:9].upper()]:
                found = self.get(member, path, q=text)[key]
                self.assertEqual([one["infoHash"] for one in found], [self.busy])

    def check_bad_questions(self):
        member = self.trackers.members[0]
        for path, names in [("/api/v1/swarms", {}), ("/api/v1/torrents", {}),
                            ("/api/v1/swarms/{hash}/peers", {"hash": self.busy})]:
            bad = [("limit", 0), ("limit", 501), ("limit", "many"), ("sort", "colour"), ("order", "up"),
                   ("after", "x"), ("after", "1.2.3")]
            bad += [] if names else [("q", "q" * 257)]
            for name, value in bad:
                told = self.ask(member, "GET", path, names, status=400, **{name: value})
                self.assertIn(name, told["error"])
        for path in ["/api/v1/swarms/{hash}", "/api/v1/swarms/{hash}/peers"]:
            self.ask(member, "GET", path, {"hash": UNKNOWN}, status=404)
            self.ask(member, "GET", path, {"hash": "abc"}, status=400)
        self.ask(member, "GET", "/console/{file}", {"file": "nothing.css"}, status=404)
        self.ask(member, "DELETE", "/api/v1/faults/{id}", {"id": "moon"}, status=404)

    def check_what_is_not_described(self):
        """Paths and methods that are not described are refused in the words of the API."""
        member = self.trackers.members[1]
        refused = self.api.document["components"]["responses"]["MethodNotAllowed"]["content"]["application/json"]
        by_path = {}
        for operation in self.api.operations:
            by_path.setdefault(operation.path, set()).add(operation.method)
        names = {"hash": self.busy, "id": "bus", "file": "style.css"}
        for path, methods in by_path.items():
            for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - methods:
                status, fields, content = ask(member.host, cluster.CONSOLE, method, target(path, names))
                self.assertEqual(status, 405, f"{method} {path}: {content}")
                self.assertEqual({one.strip() for one in fields["Allow"].split(",")},
                                 methods | ({"HEAD"} if "GET" in methods else set()), path)
                self.api.check(json.loads(content), refused["schema"], f"{method} {path}")
            if "GET" in methods:
                status, fields, content = ask(member.host, cluster.CONSOLE, "HEAD", target(path, names))
                self.assertEqual((status, content), (405 if path == "/api/v1/events" else 200, b""), path)
        for path in ["/api", "/api/v1/nothing", "/api/status", "/console", "/metrics/x"]:
            status, _, content = ask(member.host, cluster.CONSOLE, "GET", path)
            self.assertEqual(status, 404, path)
            self.api.check(json.loads(content), "Error", path)

    def check_strangers(self):
        """What another site may make a browser do here: nothing that is not open to all."""
        member = self.trackers.members[2]
        names = {"hash": self.busy, "id": "bus", "file": "style.css"}
        elsewhere = [{"Host": "evil.example"}]
        from_a_page = [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"},
                       {"Referer": "http://evil.example/"}, {"Content-Type": "text/plain"}]
        for operation in self.api.operations:
            if operation.is_open:
                continue
            for headers in elsewhere + (from_a_page if operation.method != "GET" else []):
                self.ask(member, operation.method, operation.path, names, headers=headers, status=403)
        self.assertEqual(self.get(member, "/api/v1/faults")["faults"], [])

    def check_a_page_that_is_known(self):
        member = self.trackers.members[0]
        for path, names in [("/", {}), ("/console/{file}", {"file": "style.css"})]:
            _, fields, _ = ask(member.host, cluster.CONSOLE, "GET", target(path, names))
            self.ask(member, "GET", path, names, headers={"If-None-Match": fields["ETag"]}, status=304)

    # The stream

    def read_events(self, member, seconds, headers=None, query=""):
        """(event, id, value) of what the stream brings within some seconds."""
        operation = self.api.operation("GET", "/api/v1/events")
        with member.host.entered():
            connection = http.client.HTTPConnection("127.0.0.1", cluster.CONSOLE, timeout=30)
            connection.connect()
        events, lines, end = [], {}, time.monotonic() + seconds
        with contextlib.closing(connection):
            connection.request("GET", f"/api/v1/events{query}", headers=headers or {})
            reply = connection.getresponse()
            self.assertEqual(reply.status, 200)
            operation.check(200, reply.headers["Content-Type"], b"")
            # The state comes once a second, so that there always is a next line.
            while time.monotonic() < end or lines:
                line = reply.readline().decode().removesuffix("\n")
                if line and not line.startswith(":"):
                    key, value = line.split(": ", 1)
                    lines[key] = value
                elif not line:
                    if "event" in lines:
                        value = json.loads(lines["data"])
                        self.api.check(value, operation.events()[lines["event"]], lines["event"])
                        events.append((lines["event"], lines.get("id"), value))
                    lines = {}
        self.seen.add((operation.name, 200))
        return events

    def check_events(self):
        for member in self.trackers.members:
            events = self.read_events(member, 3)
            transitions = [(name, value) for kind, name, value in events if kind == "transition"]
            self.assertIn("state", [kind for kind, _, _ in events])
            self.assertTrue(transitions)
            for name, value in transitions:
                self.assertRegex(name, f"^[0-9a-f]{{16}}-{value['number']}$")
            numbers = [value["number"] for _, value in transitions]
            self.assertEqual(numbers, sorted(set(numbers)))
            middle, last = transitions[len(transitions) // 2]
            for way in [{"headers": {"Last-Event-ID": middle}}, {"query": f"?after={middle}"}]:
                later = [value["number"] for kind, _, value in self.read_events(member, 2, **way)
                         if kind == "transition"]
                self.assertTrue(all(number > last["number"] for number in later), later)
                self.assertLessEqual({number for number in numbers if number > last["number"]}, set(later))

    # What changes something

    def check_cuts(self):
        member = self.trackers.members[0]
        cut = lambda body, status, **more: self.ask(member, "POST", "/api/v1/faults", body=body, status=status, **more)
        self.check_bodies(member, "/api/v1/faults", {"from": "peers", "seconds": 1})
        for body in [{"from": "moon", "seconds": 1}, {"from": "peers"}, {"seconds": 1},
                     {"from": "peers", "seconds": 0}, {"from": "peers", "seconds": 3601},
                     {"from": "peers", "seconds": "1"}, {"from": "tracker", "seconds": 1},
                     *({"from": "tracker", "tracker": number, "seconds": 1} for number in [None, 0, -1, 1 << 32]),
                     {"from": "peers", "tracker": 0, "seconds": 1}]:
            cut(body, 400)
        self.assertEqual(self.get(member, "/api/v1/faults")["faults"], [])
        for body, ids in [({"from": "peers", "seconds": 3600}, {"peers"}),
                          ({"from": "tracker", "tracker": 2, "seconds": 3600}, {"peers", "tracker-2"}),
                          ({"from": "both", "tracker": None, "seconds": 3600}, {"peers", "tracker-2", "bus"})]:
            self.assertEqual({one["id"] for one in cut(body, 201)["faults"]}, ids)
        self.assertEqual({one["id"] for one in self.get(member, "/api/v1/state")["faults"]["faults"]} - ids, set())
        # Whom nobody hears, and who hears nobody, serves nobody.
        wait_until(lambda: ask(member.host, cluster.CONSOLE, "GET", "/healthz")[0] == 503, 20,
                   "a tracker that is cut off says so")
        self.ask(member, "GET", "/healthz", status=503)
        for one in range(3, 16):
            cut({"from": "tracker", "tracker": 100 + one, "seconds": 3600}, 201)
        cut({"from": "tracker", "tracker": 200, "seconds": 3600}, 409)
        mend = lambda status: self.ask(member, "DELETE", "/api/v1/faults/{id}", {"id": "tracker-2"}, status=status)
        self.assertNotIn("tracker-2", {one["id"] for one in mend(200)["faults"]})
        mend(404)
        self.assertEqual(self.ask(member, "DELETE", "/api/v1/faults", status=200)["faults"], [])
        wait_until(lambda: ask(member.host, cluster.CONSOLE, "GET", "/healthz")[0] == 200, 40, "it serves again")

    def check_bodies(self, member, path, good, may_be_empty=False):
        """Bodies that no order has."""
        for body in ["{", "[]", "null", "\"x\"", b"\xff\xfe"] + ([] if may_be_empty else [""]):
            self.ask(member, "POST", path, body=body, status=400)
        self.ask(member, "POST", path, body=json.dumps(good), headers={"Content-Type": "application/xml"}, status=415)
        self.ask(member, "POST", path, body=json.dumps(good) + " " * 17_000, status=413)

    def check_orders(self):
        slave, master = self.trackers.members[0], self.trackers.members[2]
        self.trackers.wait_until_serving()
        members, handover = "/api/v1/cluster/members", "/api/v1/cluster/handover"
        election = "/api/v1/cluster/election"
        order = lambda path, body, status, member=slave: self.ask(member, "POST", path, body=body, status=status)
        self.check_bodies(slave, members, {"add": 1})
        self.check_bodies(slave, handover, {"to": 1})
        for body in [{}, {"add": 0}, {"remove": 0}, {"add": None}, {"add": -1}, {"add": "1"}, {"add": 1.5},
                     {"add": 1 << 32}]:
            order(members, body, 400)
        for body in [{}, {"to": 0}, {"to": None}, {"to": [1]}, {"to": 1 << 40}]:
            order(handover, body, 400)
        order(members, {"add": 9}, 409)
        order(handover, {"to": 9}, 409)
        self.assertEqual(order(members, {"remove": 1}, 200)["members"], [2, 3])
        self.assertEqual(order(members, {"add": 1, "remove": None}, 200, master)["members"], [1, 2, 3])
        self.assertEqual(order(handover, {"to": 2}, 200), {"master": 2, "wasMaster": False})
        wait_until(lambda: self.trackers.master() is self.trackers.members[1], 20, self.trackers.views)
        self.assertEqual(order(handover, {"to": 2}, 200), {"master": 2, "wasMaster": True})
        self.ask(slave, "POST", election, body="x" * 17_000, status=413)
        self.assertEqual(order(election, {}, 200), {"formerMaster": 2})
        self.trackers.wait_until_serving(preferred=False)
        # A tracker that hears nobody has no master to hand an order to.
        self.ask(slave, "POST", "/api/v1/faults", body={"from": "bus", "seconds": 3600}, status=201)
        wait_until(lambda: self.get(slave, "/api/v1/cluster")["master"] == 0, 20, "it misses its master")
        order(election, {}, 409)
        self.ask(slave, "POST", "/api/v1/cluster/stop", body={"name": "described"}, status=409)
        self.ask(slave, "DELETE", "/api/v1/faults", status=200)
        self.trackers.wait_until_serving(preferred=False)

    def check_a_stopped_node(self):
        member, stop, start = self.trackers.members[0], "/api/v1/node/stop", "/api/v1/node/start"
        self.check_bodies(member, stop, {"name": "another"}, may_be_empty=True)
        for body in [{"name": 1}, {"name": []}]:
            self.ask(member, "POST", stop, body=body, status=400)
        self.ask(member, "POST", start, body="x" * 17_000, status=413)
        # It may go as long as it hears enough others to stay.
        heard = lambda: [one["role"] for one in self.get(member, "/api/v1/cluster")["trackers"] if not one["isThis"]]
        wait_until(lambda: "down" not in heard(), 20, self.trackers.views)
        self.assertEqual(self.ask(member, "POST", stop, body={"name": None}, status=200), {"isRunning": False})
        for path in ["/healthz", "/api/v1/swarms", "/api/v1/torrents"]:
            self.ask(member, "GET", path, status=503)
        for path in ["/api/v1/status", "/api/v1/cluster", "/api/v1/trackers", "/api/v1/state", "/api/v1/history"]:
            self.get(member, path)
        self.ask(member, "POST", "/api/v1/cluster/election", body={}, status=409)
        # Without the others' answers a second one may not go.
        wait_until(lambda: self.trackers.members[1].cluster_view()["trackers"][0]["role"] == "down", 20,
                   self.trackers.views)
        self.ask(self.trackers.members[1], "POST", stop, body={}, status=409)
        with member.host.entered():
            other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with contextlib.closing(other):
            other.bind(("0.0.0.0", cluster.PORT))
            self.ask(member, "POST", start, body={}, status=409)
        self.assertEqual(self.ask(member, "POST", start, body={}, status=200), {"isRunning": True})
        self.trackers.wait_until_serving(preferred=False)
        self.trackers.wait_until_equal()

    def check_the_end(self):
        self.trackers.wait_until_serving(preferred=False)
        member, stop = self.trackers.members[0], "/api/v1/cluster/stop"
        self.check_bodies(member, stop, {"name": "another"})
        for body in [{}, {"name": None}, {"name": 1}, {"name": "another"}, {"name": ""}]:
            self.ask(member, "POST", stop, body=body, status=400)
        self.assertEqual([one.is_up for one in self.trackers.members], [True] * 3)
        self.assertEqual(self.ask(member, "POST", stop, body={"name": "described"}, status=200), {"isStopping": True})
        for one in self.trackers.members:
            self.assertEqual(one.process.wait(20), 0, one.log)


class TokenAPI(serving.TrackerTest):
    """A tracker with a token: who may reach it may ask nothing else without it."""

    def start_one(self):
        token = self.directory / "token"
        token.write_text("only-for-those-who-run-it\n")
        token.chmod(0o600)
        self.tracker = self.serve(self.place(), "--console-token-file", token)
        return {"Authorization": "Bearer only-for-those-who-run-it"}

    def test_each_path_wants_the_token(self):
        with_it = self.start_one()
        api = Description(FILE.read_text())
        # The description that is served is the one that is asked for here.
        _, _, served = ask(None, self.tracker.place.console, "GET", "/api/v1/openapi.yaml", headers=with_it)
        self.assertEqual(served.decode(), FILE.read_text())
        names = {"hash": UNKNOWN, "id": "bus", "file": "style.css"}
        for operation in api.operations:
            for headers in [{}, {"Authorization": "Bearer only-for-those-who-run-iT"}, {"Authorization": "Basic eDp4"}]:
                status, fields, content = ask(None, self.tracker.place.console, operation.method,
                                              target(operation.path, names), headers=headers)
                operation.check(status, fields["Content-Type"], content)
                self.assertEqual(status, 200 if operation.is_open else 401, operation.name)
                if not operation.is_open:
                    self.assertEqual(fields["WWW-Authenticate"], "Bearer")
            if operation.method == "GET" and operation.path != "/api/v1/events":
                status, fields, content = ask(None, self.tracker.place.console, "GET",
                                              target(operation.path, names), headers=with_it)
                operation.check(status, fields["Content-Type"], content)
                self.assertEqual(status, 404 if "{hash}" in operation.path else 200, operation.name)

    @unittest.skipUnless(os.access(VALIDATOR, os.X_OK), f"{VALIDATOR} is not there: make test-packages")
    def test_the_description_is_openapi(self):
        checked = subprocess.run([VALIDATOR, FILE], capture_output=True, encoding="utf-8")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    @unittest.skipUnless(os.access(FUZZER, os.X_OK), f"{FUZZER} is not there: make test-packages")
    def test_requests_that_are_made_up(self):
        """Some thousand of them, within a minute. A stream has no end, and whoever stops the tracker stops the test."""
        with_it = self.start_one()
        with self.client(self.tracker) as client:
            for info_hash in [b"a" * 20, b"b" * 20]:
                client.announce(info_hash, 7001, left=0, event=Event.STARTED)
        command = [FUZZER, "--config-file", HERE / "schemathesis.toml", "run", FILE, "--no-color",
                   "--url", f"http://127.0.0.1:{self.tracker.place.console}",
                   "--header", f"Authorization: {with_it['Authorization']}",
                   *(f"--exclude-path=/api/v1/{path}" for path in ["events", "cluster/stop", "node/stop"]),
                   "--max-time", "45", "--request-timeout", "60", "--seed", "1", "--continue-on-failure"]
        tried = subprocess.run(command, cwd=self.directory, capture_output=True, encoding="utf-8",
                               env={"HOME": str(self.directory), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"})
        self.assertEqual(tried.returncode, 0, tried.stdout[-20_000:] + tried.stderr)
        self.assertRegex(tried.stdout, r"[0-9]{3,} generated")
        self.assertIsNone(self.tracker.status, self.tracker.words)


if __name__ == "__main__":
    unittest.main()
