"""The API against its description: what trackers really answer, held against docs/openapi.yaml.

A cluster of three is asked by every path and method, in good order and in bad; one with accounts by every role, too; a
tracker with a token is asked with it and without. Schemathesis, which makes requests up from the description, is a part
of its own: it comes from no Debian package, and is skipped where `make test-packages` has not put it into
`.build/test-python`.
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
TORRENT = {"Content-Type": "application/x-bittorrent"}
MOST = 20_000
"""Bytes of a torrent file, at most, at the trackers with accounts."""
ROLES = ["viewer", "uploader", "operator", "admin"]
"""Each may do all that the ones before it may."""
OF_ACCOUNTS = ("/api/v1/sessions", "/api/v1/users", "/api/v1/torrents/{hash}", "POST /api/v1/torrents")
"""What `AccountsAPI` asks for in good order and in bad, and `ClusterAPI` does not."""


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


def is_of_accounts(operation):
    return operation.path.startswith(OF_ACCOUNTS[:3]) or operation.name in OF_ACCOUNTS


class DescribedTest(unittest.TestCase):
    """What is asked is held against the description, and noted."""

    def begin(self):
        self.api = Description(FILE.read_text())
        self.seen = set()

    def ask(self, member, method, path, names=None, body=None, headers=None, status=None, **query):
        """Asks, and holds the answer against the description; returns what it brings."""
        return self.ask_all(member, method, path, names, body, headers, status, **query)[1]

    def ask_all(self, member, method, path, names=None, body=None, headers=None, status=None, **query):
        """The same, with the header before it."""
        operation = self.api.operation(method, path)
        got, fields, content = ask(member.host, cluster.CONSOLE, method, target(path, names, **query), body, headers)
        what = f"tracker {member.number}, {method} {target(path, names, **query)} {str(body)[:200]}"
        try:
            value = operation.check(got, fields, content)
        except AssertionError as problem:
            raise AssertionError(f"{what}: {problem}") from None
        if status is not None:
            self.assertEqual(got, status, f"{what}: {value}")
        self.seen.add((operation.name, got))
        return fields, value

    def check_all_is_seen(self, operations, but=frozenset()):
        described = {(one.name, status) for one in operations for status in one.statuses}
        self.assertEqual(described - self.seen - but, set(), "described, and not seen")

    def check_bodies(self, member, path, good, may_be_empty=False, method="POST", **more):
        """Bodies that no order has."""
        headers = more.pop("headers", {})
        for body in ["{", "[]", "null", "\"x\"", b"\xff\xfe"] + ([] if may_be_empty else [""]):
            self.ask(member, method, path, body=body, status=400, headers=headers, **more)
        self.ask(member, method, path, body=json.dumps(good), status=415,
                 headers={**headers, "Content-Type": "application/xml"}, **more)
        self.ask(member, method, path, body=json.dumps(good) + " " * 17_000, status=413, headers=headers, **more)


class ClusterAPI(DescribedTest):
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
        self.begin()
        for part in [self.check_reads, self.check_pages, self.check_bad_questions, self.check_what_is_not_described,
                     self.check_strangers, self.check_a_page_that_is_known, self.check_events, self.check_cuts,
                     self.check_orders, self.check_a_stopped_node, self.check_the_end]:
            with self.subTest(part.__name__):
                part()
        # 401 is the affair of `TokenAPI`, and what one sender may take that of `test_edges`.
        others = {(one.name, status) for one in self.api.operations for status in UNFORCED | {401}}
        others |= {("GET /api/v1/events", 429)}
        # What was given elsewhere was right at the start; only a file that has changed since is not.
        others.add(("DELETE /api/v1/settings", 422))
        # Of a tracker that records nothing.
        others.add(("POST /api/v1/recording", 409))
        # To somebody who has logged in, at a tracker without a master.
        others.add(("POST /api/v1/cluster/stop", 409))
        self.check_all_is_seen([one for one in self.api.operations if not is_of_accounts(one)], others)

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
            # Files come after their names.
            wait_until(lambda: self.get(member, "/api/v1/torrents/{hash}", {"hash": self.busy})["hasFile"], 10,
                       "the file is there")
            torrent = self.get(member, "/api/v1/torrents/{hash}", {"hash": self.busy})
            self.assertEqual((torrent["origin"], "files" in torrent, "whyNoFile" in torrent), ("file", True, False))
            self.assertEqual(self.get(member, "/api/v1/state")["login"], {"required": False})
            self.assertEqual(self.get(member, "/api/v1/users"), {"users": []})
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
        names = {"hash": self.busy, "id": "bus", "file": "style.css", "name": "nobody"}
        for path, methods in by_path.items():
            for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - methods:
                status, fields, content = ask(member.host, cluster.CONSOLE, method, target(path, names))
                self.assertEqual(status, 405, f"{method} {path}: {content}")
                self.assertEqual({one.strip() for one in fields["Allow"].split(",")},
                                 methods | ({"HEAD"} if "GET" in methods else set()), path)
                self.api.check(json.loads(content), refused["schema"], f"{method} {path}")
            if "GET" in methods:
                status, fields, content = ask(member.host, cluster.CONSOLE, "HEAD", target(path, names))
                expected = {"/api/v1/events": 405, "/api/v1/users/{name}/sessions": 404,
                            "/api/v1/users/{name}/passkey": 404}.get(path, 200)
                self.assertEqual((status, content), (expected, b""), path)
        for path in ["/api", "/api/v1/nothing", "/api/status", "/console", "/metrics/x"]:
            status, _, content = ask(member.host, cluster.CONSOLE, "GET", path)
            self.assertEqual(status, 404, path)
            self.api.check(json.loads(content), "Error", path)

    def check_strangers(self):
        """What another site may make a browser do here: nothing that is not open to all."""
        member = self.trackers.members[2]
        names = {"hash": self.busy, "id": "bus", "file": "style.css", "name": "nobody"}
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
            operation.check(200, reply.headers, b"")
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

    def check_orders(self):
        slave, master = self.trackers.members[0], self.trackers.members[2]
        self.trackers.wait_until_serving()
        members, handover = "/api/v1/cluster/members", "/api/v1/cluster/handover"
        election = "/api/v1/cluster/election"
        order = lambda path, body, status, member=slave: self.ask(member, "POST", path, body=body, status=status)
        self.ask(slave, "POST", "/api/v1/recording", status=201)
        self.ask(slave, "POST", "/api/v1/recording", body=" " * 17_000, status=413)
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
        # A tracker that hears nobody has no master to hand an order to, and may have missed the first account.
        self.ask(slave, "POST", "/api/v1/faults", body={"from": "bus", "seconds": 3600}, status=201)
        wait_until(lambda: self.get(slave, "/api/v1/cluster")["master"] == 0, 20, "it misses its master")
        order(election, {}, 503)
        self.ask(slave, "POST", "/api/v1/cluster/stop", body={"name": "described"}, status=503)
        self.ask(slave, "DELETE", "/api/v1/faults", status=200)
        self.trackers.wait_until_serving(preferred=False)

    def check_a_stopped_node(self):
        member, stop, start = self.trackers.members[0], "/api/v1/node/stop", "/api/v1/node/start"
        self.check_bodies(member, stop, {"name": "another"}, may_be_empty=True)
        for body in [{"name": 1}, {"name": []}]:
            self.ask(member, "POST", stop, body=body, status=400)
        self.ask(member, "POST", start, body="x" * 17_000, status=413)
        settings = "/api/v1/settings"
        self.ask(member, "PUT", settings, body={"settings": {}}, status=409)
        self.ask(member, "DELETE", settings, status=409)
        # It may go as soon as it hears enough others that stay.
        wait_until(lambda: self.stops(member), 20, self.trackers.views)
        for path in ["/healthz", "/api/v1/swarms", "/api/v1/torrents"]:
            self.ask(member, "GET", path, status=503)
        for path in ["/api/v1/status", "/api/v1/cluster", "/api/v1/trackers", "/api/v1/state", "/api/v1/history"]:
            self.get(member, path)
        self.ask(member, "POST", "/api/v1/cluster/election", body={}, status=409)
        self.check_bodies(member, settings, {"settings": {}}, method="PUT")
        for body in [{}, {"settings": []}, {"settings": {}, "keep": 1}]:
            self.ask(member, "PUT", settings, body=body, status=400)
        self.ask(member, "PUT", settings, body={"settings": {"moon": 1, "id": {}}}, status=422)
        self.ask(member, "PUT", settings, body={"settings": {}}, headers={"If-Match": '"1"'}, status=412)
        self.ask(member, "DELETE", settings, headers={"If-Match": '"1"'}, status=412)
        self.ask(member, "DELETE", settings, headers={"If-Match": "moon"}, status=400)
        self.ask(member, "DELETE", settings, body="x" * 17_000, status=413)
        advertised = {"settings": {"cluster.advertise": "udp://a.example:1/announce"}, "keep": True}
        self.ask(member, "PUT", settings, body=advertised, status=200)
        self.ask(member, "DELETE", settings, status=200)
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

    def stops(self, member):
        try:
            return self.ask(member, "POST", "/api/v1/node/stop", body={"name": None}, status=200) == {"isRunning": False}
        except AssertionError:
            return False

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


class AccountsAPI(DescribedTest):
    """Three trackers with an account of each role, a torrent of a file, one whose file is too large, and one that is
    uploaded.

    Nobody is asked twice who may not: what each role may do is said by the description alone.
    """

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        directory = pathlib.Path(cls.stack.enter_context(tempfile.TemporaryDirectory()))
        cls.registered, cls.uploaded, cls.large = (metainfo.Torrent(seed, 100_000) for seed in (3, 4, 5))
        cls.file = cls.uploaded.file("udp://tracker.example:6969/announce")
        name = directory / f"{cls.registered.name}.torrent"
        name.write_bytes(cls.registered.file("udp://tracker.example:6969/announce"))
        (directory / "large.torrent").write_bytes(cls.large.file(f"udp://tracker.example:6969/{'x' * MOST}"))
        cls.trackers = cls.stack.enter_context(
            cluster.Cluster("multicast", flags=["--torrents", directory, "--limit-torrent-file-bytes", MOST]))
        cls.client = cls.trackers.client(cls.trackers.members[0])
        # A torrent without a peer is a swarm, too; so that it has one in any case.
        cls.client.announce(cls.registered.info_hash, 7001, left=0, event=Event.STARTED)
        cls.trackers.wait_until_equal()

    def test_what_each_role_may_do(self):
        """All in one test, for a cluster takes a while to start."""
        self.begin()
        for part in [self.check_before_the_first, self.check_log_ins, self.check_tokens, self.check_roles,
                     self.check_users, self.check_uploads, self.check_strangers, self.check_without_a_majority,
                     self.check_the_limit]:
            with self.subTest(part.__name__):
                part()
        # As much as a cluster keeps at most is not uploaded here; `test_edges` uploads slowly.
        others = {("POST /api/v1/torrents", status) for status in (408, 409, 429)}
        # Nor are random numbers made anew until two are the same.
        others |= {(f"{method} /api/v1/users/{{name}}/passkey", 409) for method in ("PUT", "DELETE")}
        others |= {(one.name, 503) for one in self.api.operations
                   if one.name not in ("PUT /api/v1/users/{name}", "DELETE /api/v1/torrents/{hash}")}
        self.check_all_is_seen([one for one in self.api.operations if is_of_accounts(one)], others)

    def password(self, name):
        return f"the password of {name}"

    def log_in(self, member, name, password=None):
        """The cookie, and what came with it."""
        fields, value = self.ask_all(member, "POST", "/api/v1/sessions", status=201,
                                     body={"name": name, "password": password or self.password(name)})
        return {"Cookie": fields["Set-Cookie"].split(";")[0]}, value

    def put(self, name, body, status, headers=None, member=None):
        return self.ask_all(member or self.trackers.members[1], "PUT", "/api/v1/users/{name}", {"name": name}, body,
                            {**self.cookies["admin"], **(headers or {})}, status)

    def check_before_the_first(self):
        """While there is no account, whoever is on the machine makes the first."""
        member = self.trackers.members[0]
        self.cookies = {role: {} for role in ROLES}
        self.assertEqual(self.ask(member, "GET", "/api/v1/sessions", status=200), {"sessions": []})
        self.ask(member, "POST", "/api/v1/sessions/tokens", body={"label": "nobody's"}, status=409)
        for operation in self.api.operations:
            if operation.method == "GET" and not operation.is_open:
                self.ask(member, "GET", operation.path, {"hash": UNKNOWN, "name": "nobody"},
                         headers={"Host": "evil.example"}, status=403)
        self.put("viewer", {"role": "viewer", "password": self.password("viewer")}, 409, member=member)
        _, made = self.put("admin", {"role": "admin", "password": self.password("admin")}, 201, member=member)
        self.assertEqual((made["name"], made["role"], made["origin"]), ("admin", "admin", "console"))
        self.cookies["admin"], _ = self.log_in(member, "admin")
        # From here on the cluster is watched as an admin.
        self.trackers.console_token = self.ask(member, "POST", "/api/v1/sessions/tokens", body={"label": "watches"},
                                               headers=self.cookies["admin"], status=201)["token"]
        self.trackers.wait_until_equal()
        for role in ROLES[:-1]:
            self.put(role, {"role": role, "password": self.password(role)}, 201)

    def check_log_ins(self):
        self.trackers.wait_until_equal()
        path = "/api/v1/sessions"
        for number, role in enumerate(ROLES):
            made_at, used_at = (self.trackers.members[(number + step) % 3] for step in (0, 1))
            self.cookies[role], value = self.log_in(made_at, role)
            self.assertEqual(value, {"name": role, "role": role, "isLocal": False})
            self.trackers.wait_until_equal()
            state = self.ask(used_at, "GET", "/api/v1/state", headers=self.cookies[role], status=200)
            self.assertEqual(state["login"], {"required": True, "user": {"name": role, "role": role}})
            sessions = self.ask(used_at, "GET", path, headers=self.cookies[role], status=200)["sessions"]
            self.assertIn(("", False), {(one["label"], one["isToken"]) for one in sessions})
        member = self.trackers.members[2]
        self.check_bodies(member, path, {"name": "viewer", "password": "?"})
        for body in [{"name": "viewer"}, {"password": "?"}, {"name": 1, "password": "?"},
                     {"name": "viewer", "password": None}]:
            self.ask(member, "POST", path, body=body, status=400)
        for name, password in [("viewer", "wrong"), ("nobody", "wrong"), ("viewer", "x" * 2000), ("x" * 100, "x")]:
            self.ask(member, "POST", path, body={"name": name, "password": password}, status=401)
        # Whoever is out is out; the cookie goes.
        cookie, _ = self.log_in(member, "admin")
        fields, _ = self.ask_all(member, "DELETE", f"{path}/current", headers=cookie, status=200)
        self.assertIn("Max-Age=0", fields["Set-Cookie"])
        self.ask(member, "GET", path, headers=cookie, status=401)

    def check_tokens(self):
        member, path = self.trackers.members[1], "/api/v1/sessions/tokens"
        self.check_bodies(member, path, {"label": "x"}, headers=self.cookies["admin"])
        order = lambda body, status: self.ask(member, "POST", path, body=body, status=status,
                                              headers=self.cookies["admin"])
        for body in [{}, {"label": ""}, {"label": "x" * 65}, {"label": "x", "days": 0}, {"label": "x", "days": 3651},
                     {"label": "x", "days": -1}, {"label": "x", "days": "1"}]:
            order(body, 400)
        self.assertEqual(order({"label": "to look"}, 201)["days"], 365)
        made = order({"label": "to look", "days": 3650}, 201)
        self.assertEqual((made["label"], made["days"]), ("to look", 3650))
        self.trackers.wait_until_equal()
        for other in self.trackers.members:
            headers = {"Authorization": f"Bearer {made['token']}"}
            sessions = self.ask(other, "GET", "/api/v1/sessions", headers=headers, status=200)["sessions"]
            self.assertIn(("to look", True), {(one["label"], one["isToken"]) for one in sessions})
            kept = self.ask(other, "GET", "/api/v1/users/{name}/sessions", {"name": "admin"}, headers=headers,
                            status=200)["sessions"]
            self.assertEqual(kept, sessions)
        mine = next(one["id"] for one in kept if one["isCurrent"])
        path, names = "/api/v1/users/{name}/sessions/{id}", {"name": "admin", "id": mine}
        self.ask(member, "DELETE", path, names, body="x" * 17_000, headers=self.cookies["admin"], status=413)
        self.ask(member, "DELETE", path, names, headers=headers, status=200)
        self.ask(member, "DELETE", path, names, headers=self.cookies["admin"], status=404)

    def check_roles(self):
        """Every operation by every role and by nobody. What is asked for changes nothing, even where it is allowed."""
        long = "x" * 17_000
        asked = {"POST /api/v1/cluster/election": (413, long, {}), "POST /api/v1/node/start": (413, long, {}),
                 "POST /api/v1/recording": (413, long, {}),
                 "DELETE /api/v1/sessions/current": (413, long, {}), "POST /api/v1/torrents": (400, "x", TORRENT),
                 "PUT /api/v1/users/{name}": (400, {"role": "viewer"}, {}),
                 "DELETE /api/v1/users/{name}": (404, None, {}), "DELETE /api/v1/torrents/{hash}": (404, None, {}),
                 **{f"{method} /api/v1/users/{{name}}/passkey": (404, None, {}) for method in ("GET", "PUT", "DELETE")},
                 "GET /api/v1/torrents/{hash}/file": (404, None, {}), "DELETE /api/v1/faults": (200, None, {}),
                 "DELETE /api/v1/settings": (409, None, {}),
                 "DELETE /api/v1/faults/{id}": (404, None, {}), "GET /api/v1/users/{name}/sessions": (404, None, {}),
                 "DELETE /api/v1/users/{name}/sessions/{id}": (404, None, {})}
        names = {"hash": self.large.info_hash.hex(), "id": "bus", "file": "style.css", "name": "nobody"}
        allowed = set()
        for operation, number in zip(self.api.operations, itertools.cycle(range(3))):
            status, body, headers = asked.get(
                operation.name, (200, None, {}) if operation.method == "GET" else (400, "{", {}))
            member = self.trackers.members[number]
            for role in [None, *ROLES]:
                expected = status
                if operation.role and not role:
                    expected = 401
                elif operation.role and ROLES.index(role) < ROLES.index(operation.role):
                    expected = 403
                # Anybody may change the own password and passkey and end the own sessions, and nobody but an admin
                # anything else.
                elif operation.path.startswith("/api/v1/users/{name}") and operation.role == "viewer" and role != "admin":
                    expected = 403
                with self.subTest(operation.name, role=role):
                    own = {**headers, **(self.cookies[role] if role else {})}
                    if operation.path == "/api/v1/events" and expected == 200:
                        self.assertEqual(self.status_of_stream(member, own), 200)
                        continue
                    told = self.ask(member, operation.method, operation.path, names, body, own, expected)
                    if expected == 403 and operation.role != "viewer":
                        self.assertIn(f"for the role {operation.role} and above", told["error"])
                        self.assertIn(f"logged in as {role},", told["error"])
                    if role and expected not in (401, 403):
                        allowed.add((operation.role, role))
        self.assertEqual({role for role, _ in allowed} - {None}, set(ROLES), "each role is needed for something")

    def status_of_stream(self, member, headers):
        with member.host.entered():
            connection = http.client.HTTPConnection("127.0.0.1", cluster.CONSOLE, timeout=30)
            connection.connect()
        with contextlib.closing(connection):
            connection.request("GET", "/api/v1/events", headers=headers)
            return connection.getresponse().status

    def check_users(self):
        member, path, admin = self.trackers.members[2], "/api/v1/users/{name}", self.cookies["admin"]
        self.check_bodies(member, path, {"role": "viewer"}, method="PUT", names={"name": "viewer"}, headers=admin,
                          may_be_empty=True)
        for name, body in [("viewer", {"role": "king"}), ("viewer", {"role": 1}), ("viewer", {"password": "short"}),
                           ("viewer", {"password": "x" * 1025}), ("new", {}), ("new", {"role": "viewer"}),
                           ("new", {"password": "long enough"}), *((name, {"role": "viewer", "password": "long enough"})
                           for name in ["-x", ".x", "x y", "ä", "x" * 65, "<b>", "x/y"])]:
            self.put(name, body, 400)
        fields, made = self.put("new", {"role": "viewer", "password": "long enough"}, 201, {"If-None-Match": "*"})
        tag = fields["ETag"]
        self.assertEqual(tag, f'"{made["changedAt"]}"')
        self.put("new", {"role": "uploader"}, 412, {"If-None-Match": "*"})
        self.put("new", {"role": "uploader"}, 412, {"If-Match": '"1"'})
        for wrong in [{"If-None-Match": tag}, {"If-Match": "x"}, {"If-Match": '"0"'}]:
            self.put("new", {"role": "uploader"}, 400, wrong)
        fields, made = self.put("new", {"role": "uploader", "password": None}, 200, {"If-Match": tag})
        self.assertEqual((made["role"], made["name"]), ("uploader", "new"))
        self.trackers.wait_until_equal()
        for other in self.trackers.members:
            users = self.ask(other, "GET", "/api/v1/users", headers=admin, status=200)["users"]
            self.assertEqual({one["name"]: one["role"] for one in users},
                             {**{role: role for role in ROLES}, "new": "uploader"})
            self.assertEqual([one["name"] for one in users], sorted(one["name"] for one in users))
        remove = lambda name, status, headers=None: self.ask(
            member, "DELETE", path, {"name": name}, headers={**admin, **(headers or {})}, status=status)
        remove("new", 412, {"If-Match": tag})
        remove("new", 400, {"If-Match": "x"})
        self.ask(member, "DELETE", path, {"name": "new"}, body="x" * 17_000, headers=admin, status=413)
        self.check_passkey(member, admin)
        fields, _ = self.put("new", {"role": "viewer"}, 200, member=member)
        remove("new", 200, {"If-Match": fields["ETag"]})
        self.trackers.wait_until_equal()
        remove("new", 404)
        # The last admin stays one; nobody raises the own role; the own password is one's own affair.
        remove("admin", 409)
        self.put("admin", {"role": "viewer"}, 409)
        viewer = self.cookies["viewer"]
        self.ask(member, "PUT", path, {"name": "viewer"}, {"role": "admin"}, viewer, 403)
        self.ask(member, "PUT", path, {"name": "uploader"}, {"password": "taken over"}, viewer, 403)
        self.ask(member, "PUT", path, {"name": "viewer"}, {"password": "a password of its own"}, viewer, 200)
        self.trackers.wait_until_equal()
        self.ask(member, "GET", "/api/v1/sessions", headers=viewer, status=401)
        self.cookies["viewer"], _ = self.log_in(member, "viewer", "a password of its own")
        self.trackers.wait_until_equal()

    def check_passkey(self, member, admin):
        path = "/api/v1/users/{name}/passkey"

        def ask(method, status, headers=None, **options):
            return self.ask_all(member, method, path, {"name": "new"}, headers={**admin, **(headers or {})},
                                status=status, **options)
        ask("GET", 404)
        fields, made = ask("PUT", 200)
        self.trackers.wait_until_equal()
        for method in ("PUT", "DELETE"):
            ask(method, 400, {"If-Match": "x"})
            ask(method, 412, {"If-Match": '"1"'})
            ask(method, 413, body="x" * 17_000)
        self.assertRegex(made["passkey"], "^[0-9a-f]{32}$")
        self.assertTrue(made["announce"] and all(f"/{made['passkey']}/announce" in url for url in made["announce"]))
        self.trackers.wait_until_equal()
        self.assertEqual(ask("GET", 200)[1], made)
        ask("PUT", 200, {"If-Match": fields["ETag"]})
        self.trackers.wait_until_equal()
        self.assertNotEqual(ask("GET", 200)[1]["passkey"], made["passkey"])
        self.assertEqual(ask("DELETE", 200)[1], {"name": "new", "passkey": None, "announce": []})
        self.trackers.wait_until_equal()

    def check_uploads(self):
        here, there = self.trackers.members[0], self.trackers.members[2]
        path, one, file = "/api/v1/torrents", "/api/v1/torrents/{hash}", "/api/v1/torrents/{hash}/file"
        uploader, names = self.cookies["uploader"], {"hash": self.uploaded.info_hash.hex()}

        def upload(body, status, **headers):
            return self.ask_all(here, "POST", path, body=body, status=status, headers={
                **uploader, **TORRENT, **{name.replace("_", "-"): value for name, value in headers.items()}})

        for body in [b"", b"x", self.file[:-1], b"d4:infodee", b"l" * 10_000, b"i1e"]:
            upload(body, 400)
        upload(self.file, 415, Content_Type="application/json")
        upload(self.file, 400, If_Match="x")
        self.assertEqual(self.ask(here, "GET", "/api/v1", headers=uploader, status=200)["torrentFileByteCount"], MOST)
        upload(b"x" * (MOST + 1), 413)
        upload(self.file, 412, If_Match='"1"')
        self.ask(there, "GET", one, names, headers=uploader, status=404)
        fields, made = upload(self.file, 201, If_None_Match="*")
        self.assertEqual((made["infoHash"], made["origin"], made["hasFile"], made["fileByteCount"]),
                         (names["hash"], "console", True, len(self.file)))
        self.assertEqual(made["files"], [{"path": self.uploaded.name, "byteCount": 100_000}])
        tag = fields["ETag"]
        upload(self.file, 412, If_None_Match="*")
        upload(self.file, 200, Content_Type="application/octet-stream", If_Match=tag)
        self.trackers.wait_until_equal()
        for member in self.trackers.members:
            fields, content = self.ask_all(member, "GET", file, names, headers=self.cookies["viewer"], status=200)
            self.assertEqual(content, self.file)
            self.assertEqual(fields["Content-Disposition"], f'attachment; filename="{names["hash"]}.torrent"')
            shown = self.ask(member, "GET", one, names, headers=self.cookies["viewer"], status=200)
            self.assertEqual((shown["hasFile"], shown["fileCount"], shown["pieceByteCount"]),
                             (True, 1, metainfo.PIECE_LENGTH))
            known = {"hash": self.registered.info_hash.hex()}
            shown = self.ask(member, "GET", one, known, headers=self.cookies["viewer"], status=200)
            self.assertEqual((shown["hasFile"], shown["origin"]), (True, "file"))
            self.ask_all(member, "GET", file, known, headers=self.cookies["viewer"], status=200)
            large = {"hash": self.large.info_hash.hex()}
            shown = self.ask(member, "GET", one, large, headers=self.cookies["viewer"], status=200)
            self.assertEqual((shown["hasFile"], "files" in shown), (False, False))
            self.assertIn("limits.torrent-file-bytes", shown["whyNoFile"])
            self.ask(member, "GET", file, large, headers=self.cookies["viewer"], status=404)
            listed = lambda: {one["infoHash"]: (one["origin"], one["hasFile"]) for one in self.ask(
                member, "GET", path, headers=self.cookies["viewer"], status=200)["torrents"]}
            # A list may be two seconds old.
            wait_until(lambda: len(listed()) == 3, 10, "the torrents are listed")
            self.assertEqual(listed(), {names["hash"]: ("console", True), known["hash"]: ("file", True),
                                        large["hash"]: ("file", False)})
        for place in [one, file]:
            self.ask(there, "GET", place, {"hash": "abc"}, headers=uploader, status=400)
        remove = lambda status, body=None, more=names, **headers: self.ask(
            there, "DELETE", one, more, body, {**uploader, **headers}, status)
        remove(400, more={"hash": "abc"})
        remove(413, "x" * 17_000)
        remove(412, **{"If-Match": '"1"'})
        remove(409, more={"hash": self.registered.info_hash.hex()})
        remove(200)
        remove(404)
        # For what nobody can decide on, below.
        upload(self.file, 201)
        self.trackers.wait_until_equal()

    def check_strangers(self):
        """A page of another site may not use a log-in that its visitor has, nor make one."""
        member = self.trackers.members[1]
        names = {"hash": UNKNOWN, "id": "bus", "file": "style.css", "name": "nobody"}
        for operation in self.api.operations:
            if operation.method == "GET":
                continue
            for headers in [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "same-site"},
                            {"Referer": "http://evil.example/"}, {"Content-Type": "text/plain"}]:
                self.ask(member, operation.method, operation.path, names, headers={**self.cookies["admin"], **headers},
                         status=403)

    def check_without_a_majority(self):
        """Whom nobody hears can decide nothing, and says so; who is known may log in still."""
        member, admin = self.trackers.members[0], self.cookies["admin"]
        self.ask(member, "POST", "/api/v1/faults", body={"from": "bus", "seconds": 3600}, headers=admin, status=201)
        wait_until(lambda: self.ask(member, "GET", "/api/v1/cluster", headers=admin)["master"] == 0, 20,
                   "it misses its master")
        told = self.put("viewer", {"role": "uploader"}, 503, member=member)[1]
        self.assertGreater(len(told["error"]), 10)
        self.ask(member, "DELETE", "/api/v1/torrents/{hash}", {"hash": self.uploaded.info_hash.hex()}, headers=admin,
                 status=503)
        cookie, value = self.log_in(member, "operator")
        self.assertTrue(value["isLocal"])
        self.ask(member, "GET", "/api/v1/state", headers=cookie, status=200)
        self.ask(member, "DELETE", "/api/v1/faults", headers=cookie, status=200)
        self.trackers.wait_until_serving(preferred=False)
        self.trackers.wait_until_equal()

    def check_the_limit(self):
        member, status = self.trackers.members[0], None
        for _ in range(40):
            if status == 429:
                break
            status, fields, content = ask(member.host, cluster.CONSOLE, "POST", "/api/v1/sessions",
                                          {"name": "viewer", "password": "wrong"})
        self.assertEqual(status, 429)
        fields, told = self.ask_all(member, "POST", "/api/v1/sessions", status=429,
                                    body={"name": "admin", "password": self.password("admin")})
        self.assertIn(f"in {fields['Retry-After']} s", told["error"])


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
        names = {"hash": UNKNOWN, "id": "bus", "file": "style.css", "name": "nobody"}
        for operation in api.operations:
            for headers in [{}, {"Authorization": "Bearer only-for-those-who-run-iT"}, {"Authorization": "Basic eDp4"}]:
                status, fields, content = ask(None, self.tracker.place.console, operation.method,
                                              target(operation.path, names), headers=headers)
                operation.check(status, fields, content)
                # Who logs in has to say as whom.
                is_open = 200 if operation.method == "GET" else 400
                self.assertEqual(status, is_open if operation.is_open else 401, operation.name)
                if not operation.is_open:
                    self.assertEqual(fields["WWW-Authenticate"], "Bearer")
            if operation.method == "GET" and operation.path != "/api/v1/events":
                status, fields, content = ask(None, self.tracker.place.console, "GET",
                                              target(operation.path, names), headers=with_it)
                operation.check(status, fields, content)
                is_of_nothing = "{hash}" in operation.path or "{name}" in operation.path
                self.assertEqual(status, 404 if is_of_nothing else 200, operation.name)

    @unittest.skipUnless(os.access(VALIDATOR, os.X_OK), f"{VALIDATOR} is not there: make test-packages")
    def test_the_description_is_openapi(self):
        checked = subprocess.run([VALIDATOR, FILE], capture_output=True, encoding="utf-8")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    @unittest.skipUnless(os.access(FUZZER, os.X_OK), f"{FUZZER} is not there: make test-packages")
    def test_requests_that_are_made_up(self):
        """Some hundred of them, within a minute. A stream has no end, and whoever stops the tracker stops the test."""
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
