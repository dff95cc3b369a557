"""Accounts, log-ins and tokens of the console, over three trackers that act as one: who may do what, everywhere, after
crashes and without a majority; and what strangers try.
"""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import metainfo
from consoles import CLUSTER, PASSWORD, Console, ThreeTrackers
from serving import TrackerTest, free_port, require_tracker, wait_until

setUpModule = require_tracker

ROLES = ["viewer", "uploader", "operator", "admin"]
READS = ["", "status", "cluster", "trackers", "state", "history", "events", "swarms", "torrents", "settings", "faults",
         "users", "sessions", "openapi.yaml", f"swarms/{'0' * 40}", f"torrents/{'0' * 40}", f"torrents/{'0' * 40}/file",
         "nothing", "/metrics", "/nothing"]
SHIFTED_CLOCK = pathlib.Path(__file__).parent / "shifted_clock.c"


def torrent(seed=1):
    return metainfo.Torrent(seed, 70_000).file("udp://tracker.example:6969/announce")


class FirstAccount(ThreeTrackers):

    def test_it_is_an_admin_made_from_this_machine_and_shuts_all_consoles(self):
        for number in self.places:
            self.assertEqual(self.console(number).get("status").status, 200)
            self.assertFalse(self.console(number).get("state").json["login"]["required"])
        for role in ROLES[:3]:
            first = self.console(1).ask("PUT", "users/first", {"role": role, "password": PASSWORD})
            self.assertEqual(first.status, 409, "nobody could make another account")
            self.assertIn("admin", first.error)
        self.assertIn("no accounts", self.user_command(2, "list").output)
        self.make_admin(2)
        for number in self.places:
            for path in READS:
                answer = self.console(number).get(path)
                self.assertEqual(answer.status, 401, path)
                self.assertIn("log in", answer.error)
            for method, path in [("POST", "faults"), ("PUT", "users/evil"), ("DELETE", "users/root"),
                                 ("POST", "torrents"), ("POST", "cluster/stop"), ("POST", "node/stop")]:
                self.assertEqual(self.console(number).ask(method, path, {}).status, 401, path)
            for path in ["/healthz", "/", "/console/app.js", "/console/style.css"]:
                self.assertEqual(self.console(number).get(path).status, 200, path)
            user = self.root(number).get("state").json["login"]
            self.assertEqual(user, {"required": True, "user": {"name": "root", "role": "admin"}})
        # Nor by the command, which says so.
        self.assertIn("log in", self.user_command(1, "list", status=1).words)


class Roles(ThreeTrackers):

    ALLOWED = [
        # method, path, body, the least role; nothing that is let in changes anything
        ("GET", "status", None, "viewer"), ("GET", "swarms", None, "viewer"), ("GET", "settings", None, "viewer"),
        ("GET", "torrents", None, "viewer"), ("GET", "faults", None, "viewer"), ("GET", "/metrics", None, "viewer"),
        ("GET", "sessions", None, "viewer"), ("POST", "sessions/tokens", {"label": ""}, "viewer"),
        ("POST", "torrents", b"no torrent", "uploader"), ("DELETE", f"torrents/{'0' * 40}", None, "uploader"),
        ("POST", "faults", {"from": "moon", "seconds": 1}, "operator"), ("DELETE", "faults/moon", None, "operator"),
        ("PUT", "settings", {"settings": {"moon": 1}}, "operator"), ("DELETE", "settings", None, "operator"),
        ("POST", "cluster/handover", {"to": 99}, "operator"), ("POST", "cluster/members", {"add": 1}, "operator"),
        ("POST", "cluster/stop", {"name": "another"}, "admin"), ("GET", "users", None, "admin"),
        ("PUT", "users/new", {"role": "admin", "password": "short"}, "admin"), ("DELETE", "users/nobody", None, "admin"),
        ("GET", "users/root/sessions", None, "admin"), ("DELETE", "users/nobody/sessions/0", None, "admin"),
    ]
    FORBIDDEN = [("POST", "cluster/election", "operator"), ("POST", "node/stop", "operator"),
                 ("POST", "node/start", "operator"), ("DELETE", "faults", "operator")]

    def test_each_may_do_what_it_may_and_nothing_else(self):
        self.make_admin()
        sessions = {role: self.make(f"one-{role}", role) for role in ROLES}
        for role, session in sessions.items():
            for number in self.places:
                console = self.console(number, session)
                for method, path, body, least in self.ALLOWED:
                    answer = console.ask(method, path, body)
                    is_allowed = ROLES.index(role) >= ROLES.index(least)
                    with self.subTest(f"{role}: {method} {path}"):
                        self.assertEqual(answer.status not in (401, 403), is_allowed, answer)
                        self.assertLess(answer.status, 500, answer)
                        if not is_allowed:
                            self.assertTrue(answer.error)
                for method, path, least in self.FORBIDDEN:
                    if ROLES.index(role) < ROLES.index(least):
                        self.assertEqual(console.ask(method, path, {}).status, 403, f"{role}: {method} {path}")
        names = {one["name"]: one["role"] for one in self.root(3).get("users").json["users"]}
        self.assertEqual(names, {"root": "admin"} | {f"one-{role}": role for role in ROLES})

    def test_all_may_log_out_and_make_tokens(self):
        self.make_admin()
        for role in ROLES:
            session = self.make(f"one-{role}", role)
            token = self.console(1, session).ask("POST", "sessions/tokens", {"label": "mine"})
            self.assertEqual(token.status, 201, f"{role}: {token}")
            out = self.console(2, session).ask("DELETE", "sessions/current")
            self.assertEqual(out.status, 200, f"{role}: {out}")
            self.assertIn("Max-Age=0", out.headers["Set-Cookie"])
            self.wait_for_session(session, 401)


class OwnPassword(ThreeTrackers):

    def change(self, number, session, name, **body):
        return self.console(number, session).ask("PUT", f"users/{name}", body)

    def test_it_is_ones_own_and_the_role_is_not(self):
        self.make_admin()
        session, other = self.make("eve", "viewer"), self.make("bob", "operator")
        again = self.console(2)
        self.assertEqual(again.log_in("eve").status, 201)
        for body in [{"role": "admin"}, {"role": "operator", "password": "a new password"}, {"role": "uploader"}]:
            self.assertEqual(self.change(1, session, "eve", **body).status, 403, body)
        for name in ["bob", "root", "nobody"]:
            self.assertEqual(self.change(1, session, name, password="a new password").status, 403, name)
        self.assertEqual(self.change(1, session, "eve", password="short").status, 400)
        self.assertEqual(self.change(2, session, "eve", password="a new password").status, 200)
        for ended in [session, again.session]:
            self.wait_for_session(ended, 401)
        self.wait_for_session(other)
        self.assertEqual(self.console(3).log_in("eve").status, 401)
        self.assertEqual(self.console(3).log_in("eve", "a new password").status, 201)
        roles = {one["name"]: one["role"] for one in self.root(1).get("users").json["users"]}
        self.assertEqual(roles, {"root": "admin", "eve": "viewer", "bob": "operator"})

    def race(self, order, undone):
        """Somebody changes the own password again and again while an admin gives an order about the account."""
        console, stopped = self.console(1, self.make("mallory", "operator")), threading.Event()
        answers = []

        def insist():
            while not stopped.is_set():
                answer = console.ask("PUT", "users/mallory", {"password": PASSWORD})
                answers.append(answer.status)
                if answer.status == 401:
                    console.log_in("mallory")
                    time.sleep(0.2)
        threads = [threading.Thread(target=insist) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            time.sleep(1)
            # 412 where the account has just changed: an admin asks again.
            wait_until(lambda: order().status == 200, 10, "the order is carried out")
            time.sleep(4)
        finally:
            stopped.set()
            for thread in threads:
                thread.join()
        roles = {one["name"]: one["role"] for one in self.root(1).get("users").json["users"]}
        self.assertEqual(roles.get("mallory"), undone, f"the order was undone; {answers}")

    def test_it_undoes_no_removal(self):
        self.make_admin()
        self.race(lambda: self.root(2).ask("DELETE", "users/mallory"), None)

    def test_it_keeps_no_role_that_was_taken(self):
        self.make_admin()
        self.race(lambda: self.root(2).ask("PUT", "users/mallory", {"role": "viewer"}), "viewer")


class Changes(ThreeTrackers):

    def test_the_last_admin_stays(self):
        self.make_admin()
        for number in self.places:
            removal = self.root(number).ask("DELETE", "users/root")
            self.assertEqual(removal.status, 409)
            self.assertIn("last admin", removal.error)
            for role in ROLES[:3]:
                self.assertEqual(self.root(number).ask("PUT", "users/root", {"role": role}).status, 409)
        self.make("second", "admin")
        self.assertEqual(self.root(1).ask("DELETE", "users/second").status, 200)
        self.assertEqual(self.root(2).ask("DELETE", "users/root").status, 409)

    def test_two_admins_who_remove_each_other_leave_one(self):
        self.make_admin()
        other = self.make("second", "admin")
        statuses = {}

        def remove(number, session, name):
            statuses[name] = self.console(number, session).ask("DELETE", f"users/{name}").status
        threads = [threading.Thread(target=remove, args=arguments)
                   for arguments in [(1, self.admin, "second"), (3, other, "root")]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(statuses.values())[0], 200, statuses)
        self.assertIn(sorted(statuses.values())[1], (401, 409), statuses)
        alive = [session for session in (self.admin, other) if self.statuses(session, 1, 2, 3) == [200] * 3]
        self.assertEqual(len(alive), 1, statuses)

    def test_tags_say_what_is_expected(self):
        self.make_admin()
        root = self.root(1)

        def put(body, **headers):
            return root.ask("PUT", "users/eve", body, {name.replace("_", "-"): value for name, value in headers.items()})
        body = {"role": "viewer", "password": PASSWORD}
        self.assertEqual(put(body, If_Match='"1"').status, 412)
        made = put(body, If_None_Match="*")
        self.assertEqual(made.status, 201, made)
        there = put(body, If_None_Match="*")
        self.assertEqual(there.status, 412)
        self.assertIn(made.headers["ETag"], there.error)
        changed = put({"role": "uploader"}, If_Match=made.headers["ETag"])
        self.assertEqual(changed.status, 200, changed)
        self.assertNotEqual(changed.headers["ETag"], made.headers["ETag"])
        stale = put({"role": "operator"}, If_Match=made.headers["ETag"])
        self.assertEqual(stale.status, 412)
        self.assertIn(changed.headers["ETag"], stale.error)
        for bad in ["x", "", '"-1"', '"0"', '"99999999999999999999999"', 'W/"x"']:
            self.assertEqual(put({"role": "operator"}, If_Match=bad).status, 400, bad)
        self.assertEqual(put(body, If_None_Match='"1"').status, 400)
        delete = {"If-Match": made.headers["ETag"]}
        self.assertEqual(root.ask("DELETE", "users/eve", headers=delete).status, 412)
        self.assertEqual([one["role"] for one in root.get("users").json["users"] if one["name"] == "eve"], ["uploader"])
        self.assertEqual(root.ask("DELETE", "users/eve", headers={"If-Match": changed.headers["ETag"]}).status, 200)
        self.assertEqual(root.ask("DELETE", "users/eve").status, 404)

    def test_names_that_trick_somebody_are_refused(self):
        self.make_admin()
        root = self.root(1)
        for name in ["..", ".", "%2e%2e%2froot", "a%2fb", "%00", "a%00b", "%3Cscript%3E", "%22", "a%20b", "-rf", "+x",
                     "invoice%E2%80%AEfdp", "%D0%B0dmin", "%EF%BC%A1", "%0d%0aSet-Cookie:x", "%ff", "%", "a" * 65,
                     "(token)", "%28token%29", "..%5c..", "root%e2%80%8b"]:
            answer = root.ask("PUT", f"users/{name}", {"role": "admin", "password": PASSWORD})
            self.assertIn(answer.status, (400, 404, 405), f"{name}: {answer}")
            self.assertTrue(answer.error)
            self.assertNotIn("Set-Cookie", answer.headers)
        for body in [{"role": "boss", "password": PASSWORD}, {"role": "viewer"}, {"password": PASSWORD}, {}, [], None,
                     {"role": "viewer", "password": "short"}, {"role": "viewer", "password": "x" * 1025},
                     {"role": 1, "password": PASSWORD}, {"role": "viewer", "password": ["x"]}]:
            self.assertEqual(root.ask("PUT", "users/new", body).status, 400, body)
        raw = json.dumps({"role": "viewer", "password": PASSWORD}).encode()
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]:
            self.assertEqual(root.ask("PUT", "users/new", raw, {"Content-Type": kind}).status, 403, kind)
        self.assertEqual(root.ask("PUT", "users/new", raw, {"Content-Type": "application/xml"}).status, 415)
        self.assertEqual(root.ask("PUT", "users/new", b"[" * 16_000, {"Content-Type": "application/json"}).status, 400)
        self.assertEqual(root.ask("PUT", "users/new", b" " * 16_385, {"Content-Type": "application/json"}).status, 413)
        self.assertEqual([one["name"] for one in root.get("users").json["users"]], ["root"])


class Sessions(ThreeTrackers):

    def test_they_are_known_everywhere_and_survive_crashes_and_restarts(self):
        master = self.wait_for_master()
        self.make_admin(1 if master != 1 else 2)
        session = self.make("eve", "viewer")
        self.assertEqual(self.statuses(session), [200] * 3)
        self.trackers[master].kill()
        others = [number for number in self.places if number != master]
        self.wait_for_master(*others)
        self.assertEqual(self.statuses(session, *others), [200] * 2)
        # What is decided without the dead one is known to it later.
        later = self.console(others[0])
        self.assertEqual(later.log_in("eve").status, 201)
        self.wait_for_session(later.session, among=others)
        self.begin(master)
        self.wait_for_master()
        for number in self.places:
            self.restart(number)
            self.wait_for_master()
        self.assertEqual([self.statuses(one) for one in (session, later.session, self.admin)], [[200] * 3] * 3)
        self.assertEqual(self.console(master).log_in("eve", "a wrong password").status, 401)
        self.assertEqual(self.root(2).ask("DELETE", "sessions/current").status, 200)
        self.wait_for_session(self.admin, 401)
        self.admin = None
        self.assertEqual(self.statuses(session), [200] * 3)

    def test_a_stream_ends_with_its_session(self):
        self.make_admin()
        readers = []
        for number in self.places:
            connection = http.client.HTTPConnection("127.0.0.1", self.places[number].console, timeout=30)
            self.stack.callback(connection.close)
            console = self.root(number)
            connection.request("GET", "/api/v1/events", headers={"Cookie": f"{console.cookie_name}={self.admin}"})
            reply = connection.getresponse()
            self.assertEqual(reply.status, 200)
            self.assertTrue(reply.readline())
            readers.append(reply)
        self.assertEqual(self.root(1).ask("DELETE", "sessions/current").status, 200)
        self.admin = None
        for reply in readers:
            reply.read()  # To its end: a stream that goes on has none, and the test would time out.

    def test_tokens_are_no_cookies_and_end_where_they_should(self):
        self.make_admin()
        session = self.make("ci", "uploader")
        answer = self.console(1, session).ask("POST", "sessions/tokens", {"label": "build <b>machine</b>", "days": 1})
        self.assertEqual(answer.status, 201)
        token = answer.json["token"]
        file = self.directory / "token"
        file.write_text(token)
        file.chmod(0o600)
        wait_until(lambda: self.console(3, token=token).get("status").status == 200, 10, "the token is known")
        for number in self.places:
            own = self.console(number, token=token).get("sessions").json["sessions"]
            self.assertEqual([one["label"] for one in own if one["isToken"]], ["build <b>machine</b>"])
            self.assertEqual(self.console(number, token).get("status").status, 401, "a token as a cookie")
            self.assertEqual(self.console(number, token=session).get("status").status, 401, "a cookie as a token")
            self.assertEqual(self.console(number, token=token).get("users").status, 403)
            self.assertNotIn(token, json.dumps(own))
        self.assertIn("admin", self.user_command(2, "list", "--token-file", file, status=1).words)
        for body in [{"label": ""}, {"label": "x" * 65}, {"label": "x", "days": 0}, {"label": "x", "days": 3651},
                     {"label": "x", "days": -1}, {}]:
            self.assertEqual(self.console(1, session).ask("POST", "sessions/tokens", body).status, 400, body)
        # A log-out leaves it; a new password does not.
        self.assertEqual(self.console(2, session).ask("DELETE", "sessions/current").status, 200)
        self.assertEqual(self.console(1, token=token).get("status").status, 200)
        self.assertEqual(self.root(2).ask("PUT", "users/ci", {"password": "a new password"}).status, 200)
        wait_until(lambda: {self.console(number, token=token).get("status").status for number in self.places} == {401},
                   10, "the token is good no more")


    def test_one_session_or_token_of_an_account_is_ended_alone(self):
        self.make_admin()
        first, second = self.make("ci", "viewer"), None
        console = self.console(2)
        self.assertEqual(console.log_in("ci").status, 201)
        second = console.session
        self.wait_for_session(second)
        other = self.make("op", "operator")
        token = self.console(1, first).ask("POST", "sessions/tokens", {"label": "build"}).json["token"]
        wait_until(lambda: {self.console(number, token=token).get("status").status for number in self.places} == {200},
                   10, "the token is known")

        def kept(session, name="ci", number=3):
            return self.console(number, session).get(f"users/{name}/sessions")
        for session in (first, self.admin):
            shown = kept(session).json["sessions"]
            self.assertEqual([(one["label"], one["isToken"]) for one in shown], [("", False), ("", False), ("build", True)])
        self.assertEqual([one["isCurrent"] for one in kept(second).json["sessions"]], [False, True, False])
        self.assertEqual(kept(first).json, self.console(1, first).get("sessions").json)
        ids = [one["id"] for one in kept(self.admin).json["sessions"]]
        # Nobody but an admin sees or ends those of others, or learns who has an account.
        for name in ("ci", "root", "nobody"):
            self.assertEqual(kept(other, name).status, 403, name)
            self.assertEqual(self.console(1, other).ask("DELETE", f"users/{name}/sessions/{ids[0]}").status, 403, name)
        self.assertEqual(kept(self.admin, "nobody").status, 404)
        # By the name of another account, by no id, and by one that is unknown, nothing is found.
        for path in (f"op/sessions/{ids[0]}", "ci/sessions/current", f"ci/sessions/{'0' * 64}", f"ci/sessions/{first}"):
            self.assertEqual(self.root(1).ask("DELETE", f"users/{path}").status, 404, path)
        self.assertEqual(len(kept(self.admin).json["sessions"]), 3)
        # The account ends one of its own, and the admin the token; all else goes on.
        self.assertEqual(self.console(3, second).ask("DELETE", f"users/ci/sessions/{ids[0]}").status, 200)
        self.wait_for_session(first, 401)
        self.assertEqual(self.root(2).ask("DELETE", f"users/ci/sessions/{ids[2]}").status, 200)
        wait_until(lambda: {self.console(number, token=token).get("status").status for number in self.places} == {401},
                   10, "the token is good no more")
        self.assertEqual(self.statuses(second) + self.statuses(other) + self.statuses(self.admin), [200] * 9)
        self.assertEqual([one["id"] for one in kept(self.admin).json["sessions"]], [ids[1]])
        self.assertEqual(self.root(2).ask("DELETE", f"users/ci/sessions/{ids[2]}").status, 404)

    def test_a_refusal_names_the_role_in_good_english(self):
        self.make_admin()
        for role, words in (("uploader", "an uploader"), ("operator", "an operator"), ("viewer", "a viewer")):
            refusal = self.console(1, self.make(f"one-{role}", role)).get("users")
            self.assertEqual(refusal.status, 403)
            self.assertTrue(refusal.error.endswith(f"logged in as one-{role}, {words}"), refusal.error)


class ClassicSessions(Sessions):
    profile = ("--profile", "classic")


class TokenFile(ThreeTrackers):

    def setUp(self):
        self.token = os.urandom(16).hex()
        file = self.directory / "console.token"
        file.write_text(self.token)
        file.chmod(0o600)
        self.extra = ("--console-token-file", file)
        self.file = file
        super().setUp()

    def root(self, number):
        return self.console(number, token=self.token)

    def test_it_makes_the_first_account_and_stays_admin(self):
        self.assertEqual(self.console(1).get("status").status, 401)
        self.user_command(1, "add", "eve", "--role", "admin", "--password-file", self.password_file(), status=1)
        self.user_command(1, "add", "root", "--role", "admin", "--password-file", self.password_file(),
                          "--token-file", self.file)
        self.user_command(2, "add", "eve", "--role", "viewer", "--password-file", self.password_file(),
                          "--token-file", self.file)
        listed = self.user_command(3, "list", "--json", "--token-file", self.file).output
        self.assertEqual({one["name"]: one["role"] for one in json.loads(listed)}, {"root": "admin", "eve": "viewer"})
        again = self.user_command(3, "add", "eve", "--role", "admin", "--password-file", self.password_file(),
                                  "--token-file", self.file, status=1)
        self.assertIn("there already", again.words)
        self.user_command(1, "passwd", "eve", "--password-file", self.password_file("another password"),
                          "--token-file", self.file)
        self.assertEqual(self.console(2).log_in("eve").status, 401)
        self.assertEqual(self.console(2).log_in("eve", "another password").status, 201)
        last = self.user_command(2, "remove", "root", "--token-file", self.file, status=1)
        self.assertIn("last admin", last.words)
        self.user_command(2, "remove", "eve", "--token-file", self.file)
        for nearly in [self.token[:-1], self.token + "0", self.token.upper() + "x", self.token[1:], "", " "]:
            self.assertEqual(self.console(1, token=nearly or " ").get("status").status, 401, nearly)
        self.assertEqual(self.root(1).ask("POST", "sessions/tokens", {"label": "x"}).status, 409)


class WithoutMajority(ThreeTrackers):

    def test_those_who_are_known_come_in_and_do_what_needs_no_vote(self):
        self.make_admin()
        session = self.make("op", "operator")
        for number in (2, 3):
            self.trackers[number].kill()
        wait_until(lambda: not self.root(1).get("cluster").json["isServing"], 20, "tracker 1 is alone")
        # Those who are in stay in; others are told that they are known here only.
        self.assertEqual(self.console(1, session).get("status").status, 200)
        console = self.console(1)
        answer = console.log_in("op")
        self.assertEqual((answer.status, answer.json.get("isLocal")), (201, True), answer)
        self.assertEqual(self.console(1).log_in("op", "a wrong password").status, 401)
        for path in ["status", "cluster", "state", "swarms", "settings", "faults", "history"]:
            self.assertEqual(console.get(path).status, 200, path)
        cut = console.ask("POST", "faults", {"from": "peers", "seconds": 60})
        self.assertEqual(cut.status, 201, cut)
        self.assertEqual(len(console.get("faults").json["faults"]), 1)
        self.assertEqual(console.ask("DELETE", "faults").status, 200)
        self.assertEqual(console.get("faults").json["faults"], [])
        writes = [(self.root(1), "PUT", "users/new", {"role": "viewer", "password": PASSWORD}),
                  (self.root(1), "DELETE", "users/op", None), (console, "POST", "torrents", torrent()),
                  (console, "POST", "sessions/tokens", {"label": "x"})]
        for who, method, path, body in writes:
            answer = who.ask(method, path, body)
            self.assertEqual(answer.status, 503, f"{method} {path}: {answer}")
            self.assertGreater(len(answer.error.split()), 3, "it says why")
            print(f"{method} {path}: {answer.error}")
        out = self.console(1, session).ask("DELETE", "sessions/current")
        self.assertEqual(out.status, 503, "it goes on at the others")
        self.assertIn("Max-Age=0", out.headers["Set-Cookie"])
        out = self.console(1)
        self.assertEqual(out.log_in("op").status, 201)
        self.assertEqual(out.ask("DELETE", "sessions/current").status, 200)
        self.assertEqual(out.get("status").status, 401)
        # With the others again, a session of this tracker alone goes on there, and ends with its password.
        for number in (2, 3):
            self.begin(number)
        self.wait_for_master()
        self.assertEqual([self.console(number, console.session).get("status").status for number in self.places],
                         [200, 401, 401])
        self.assertEqual(self.root(2).ask("PUT", "users/op", {"password": "a new password"}).status, 200)
        self.wait_for_session(session, 401)
        self.wait_for_session(console.session, 401)

    def test_an_account_that_is_removed_and_made_anew_is_another(self):
        self.make_admin()
        self.make("op", "operator")
        for number in (2, 3):
            self.trackers[number].kill()
        wait_until(lambda: not self.root(1).get("cluster").json["isServing"], 20, "tracker 1 is alone")
        console = self.console(1)
        self.assertTrue(console.log_in("op").json["isLocal"])
        for number in (2, 3):
            self.begin(number)
        self.wait_for_master()
        self.assertEqual(self.root(2).ask("DELETE", "users/op").status, 200)
        self.wait_for_session(console.session, 401)
        self.assertEqual(
            self.root(2).ask("PUT", "users/op", {"role": "admin", "password": "of somebody else"}).status, 201)
        time.sleep(1)
        self.assertEqual(console.get("status").status, 401)


class Strangers(ThreeTrackers):

    def test_forged_cookies_open_nothing(self):
        self.make_admin()
        console = self.console(1)
        name = console.cookie_name
        forged = [f"{name}=", f"{name}={'0' * 64}", f"{name}={self.admin.upper()}x", f"{name}={self.admin[:-1]}",
                  f"{name}={self.admin}0", f"{name}x={self.admin}", f"x{name}={self.admin}", f"{name}={'a' * 4000}",
                  f"swarmkeeper-{CLUSTER}-1={self.admin}", f"{name}=\x80\xff", f"{name}=../../etc/passwd", ";" * 1000,
                  f"{name} = {self.admin}x"]
        for cookie in forged:
            answer = console.get("status", Cookie=cookie)
            self.assertEqual(answer.status, 401, f"{cookie}: {answer}")
        # The first of two is the one that counts: a page of a neighbouring host can add others.
        self.assertEqual(console.get("status", Cookie=f"{name}={'0' * 64}; {name}={self.admin}").status, 401)
        for header in ["Bearer", "Bearer ", f"Basic {self.admin}", f"Bearer {self.admin}", "Bearer \x00", "x" * 4000]:
            with contextlib.suppress(ValueError):  # Of Python's library, which refuses to send it.
                self.assertIn(console.get("status", Authorization=header).status, (400, 401), header)
        cookie = self.console(1).log_in("root").headers["Set-Cookie"]
        for word in ["HttpOnly", "SameSite=Strict", "Path=/"]:
            self.assertIn(word, cookie)

    def test_pages_of_other_sites_change_nothing(self):
        self.make_admin()
        evil = [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
                {"Sec-Fetch-Site": "same-site"}, {"Referer": "http://evil.example/"}, {"Content-Type": "text/plain"},
                {"Content-Type": "application/x-www-form-urlencoded"},
                {"Origin": f"http://127.0.0.1:{self.places[1].console}.evil.example"},
                {"Origin": f"http://127.0.0.1:{self.places[2].console}"},
                {"Referer": f"http://127.0.0.1:{self.places[1].console}.evil.example/"}]
        console = self.root(1)
        for headers in evil:
            for method, path, body in [("PUT", "users/evil", {"role": "admin", "password": PASSWORD}),
                                       ("DELETE", "users/root", {}), ("POST", "torrents", torrent()),
                                       ("POST", "faults", {"from": "bus", "seconds": 9}), ("DELETE", "faults", {}),
                                       ("PUT", "settings", {"settings": {}}), ("DELETE", "settings", {}),
                                       ("DELETE", "sessions/current", {}), ("POST", "sessions/tokens", {"label": "x"}),
                                       ("POST", "cluster/stop", {"name": CLUSTER}), ("POST", "node/stop", {}),
                                       ("POST", "sessions", {"name": "root", "password": PASSWORD})]:
                self.assertEqual(console.ask(method, path, body, headers).status, 403, f"{headers} {method} {path}")
        for name in ["Access-Control-Allow-Origin", "Access-Control-Allow-Credentials"]:
            self.assertNotIn(name, console.get("status", Origin="http://evil.example").headers)
        preflight = console.ask("OPTIONS", "users/evil", headers={
            "Origin": "http://evil.example", "Access-Control-Request-Method": "PUT"})
        self.assertIn(preflight.status, (403, 405))
        self.assertFalse([name for name in preflight.headers if name.startswith("Access-Control")])
        own = {"Origin": f"http://127.0.0.1:{self.places[1].console}", "Sec-Fetch-Site": "same-origin"}
        self.assertEqual(console.ask("PUT", "users/eve", {"role": "viewer", "password": PASSWORD}, own).status, 201)
        self.assertEqual(len(console.get("users").json["users"]), 2)
        self.assertEqual(console.get("faults").json["faults"], [])

    def test_a_name_that_points_here_is_not_here(self):
        port = self.places[1].console
        console = self.console(1)
        for host in ["evil.example", f"evil.example:{port}", f"localhost.evil.example:{port}", "localhost:80@evil.example",
                     "127.0.0.1.evil.example", "", "[::1", "[::1]evil", "0.0.0.0", "127.0.0.1:x", f"10.0.0.1:{port}",
                     "localhost,evil.example", "\x7f"]:
            for method, path, body in [("GET", "status", None), ("GET", "settings", None), ("GET", "events", None),
                                       ("PUT", "users/evil", {"role": "admin", "password": PASSWORD}),
                                       ("POST", "faults", {"from": "bus", "seconds": 9})]:
                answer = console.ask(method, path, body, {"Host": host})
                self.assertIn(answer.status, (400, 403), f"{host!r} {method} {path}: {answer}")
        for host in [f"localhost:{port}", "localhost", f"127.0.0.1:{port}", f"[::1]:{port}", f"LOCALHOST:{port}"]:
            self.assertEqual(console.get("status", Host=host).status, 200, host)
        self.assertEqual(console.get("users").json["users"], [])


class BruteForce(ThreeTrackers):

    def test_an_address_that_guesses_waits_and_others_do_not(self):
        self.make_admin()
        guesser = self.console(1, source="127.0.0.9")
        statuses = []
        while len(statuses) < 40 and (not statuses or statuses[-1] != 429):
            answer = guesser.log_in("root", f"guess number {len(statuses)}")
            statuses.append(answer.status)
        self.assertEqual(statuses[-1], 429, statuses)
        self.assertGreaterEqual(len(statuses), 10, "people mistype")
        self.assertEqual(set(statuses[:-1]), {401})
        wait = int(answer.headers["Retry-After"])
        self.assertTrue(1 <= wait <= 10, wait)
        # Not by the right password, not under another name, not by saying that somebody else asks.
        self.assertEqual(guesser.log_in("root").status, 429)
        self.assertEqual(guesser.log_in("nobody").status, 429)
        self.assertEqual(guesser.log_in("root", headers={"X-Forwarded-For": "10.0.0.1"}).status, 429)
        self.assertEqual(self.console(1, source="127.0.0.10").log_in("root").status, 201, "nobody else waits")
        time.sleep(wait + 1)
        self.assertEqual(guesser.log_in("root").status, 201)

    def test_an_account_of_ones_own_is_no_way_to_guess_on(self):
        self.make_admin()
        self.make("eve", "viewer")
        console, guesses = self.console(1, source="127.0.0.11"), 0
        for number in range(30):
            answer = console.log_in("root", f"guess number {number}")
            if answer.status == 429:
                break
            guesses += 1
            if number % 4 == 3 and console.log_in("eve").status == 429:
                break
        print(f"{guesses} guesses, with an account of one's own")
        self.assertLess(guesses, 25)

    def test_strangers_cannot_tell_who_is_known(self):
        self.make_admin()

        def took(name, source):
            console, begin = self.console(1, source=source), time.monotonic()
            answer = console.log_in(name, "a wrong password")
            self.assertEqual((answer.status, answer.error), (401, "name or password is wrong"))
            return time.monotonic() - begin
        known = sorted(took("root", f"127.0.1.{number}") for number in range(1, 8))[3]
        unknown = sorted(took("nobody", f"127.0.2.{number}") for number in range(1, 8))[3]
        print(f"a wrong password takes {known:.3f} s, a name that nobody has {unknown:.3f} s")
        self.assertLess(max(known, unknown) / min(known, unknown), 3)

    def load(self, seconds):
        return self.program("load", f"udp://127.0.0.1:{self.places[1].udp}", "--rate", 1000, "--seconds", seconds,
                            "--warm-up", 1, "--patience", 15, "--json")

    def test_log_ins_at_once_hold_up_no_announce(self):
        self.make_admin()
        before = self.load(4)
        before.wait(60)
        before = json.loads(before.output)
        load = self.load(8)
        time.sleep(2)
        statuses = []

        def log_in(number):
            statuses.append(self.console(1, source=f"127.0.3.{number}").log_in("root").status)
        threads = [threading.Thread(target=log_in, args=(number,)) for number in range(1, 41)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        load.wait(60)
        after = json.loads(load.output)
        figures = [(report["latencyMicroseconds"]["p99"], report["answered"], report["lost"]) for report in (before, after)]
        print(f"p99 of announces without log-ins {figures[0][0]} µs, with 40 at once {figures[1][0]} µs; {figures}")
        self.assertEqual(set(statuses), {201, 503}, statuses)
        self.assertLessEqual(statuses.count(201), 40 - 1)
        self.assertEqual([report["lost"] for report in (before, after)], [0, 0])
        self.assertLess(after["latencyMicroseconds"]["p99"], max(10 * before["latencyMicroseconds"]["p99"], 1_000_000))


class Addresses(TrackerTest):

    def test_a_console_for_others_needs_a_token_or_accounts(self):
        place = self.place()
        flags = ["--udp", f"127.0.0.1:{place.udp}", "--data", place.data, "--console", f"0.0.0.0:{place.console}"]
        refused = self.run_program("serve", *flags)
        self.assertNotEqual(refused.status, 0)
        self.assertIn("token", refused.words)
        # With an account in its record it starts, and lets nobody in who has not logged in.
        tracker = self.serve(place)
        self.assertEqual(Console(place.console).ask("PUT", "users/root", {"role": "admin", "password": PASSWORD}).status, 201)
        tracker.stop()
        self.lets_in_who_has_logged_in(place, flags)

    def test_accounts_of_a_file_will_do_and_nobody_slips_in_before_they_are_in_force(self):
        place, file = self.place(), self.directory / "accounts.txt"
        flags = ["--udp", f"127.0.0.1:{place.udp}", "--data", place.data, "--console", f"0.0.0.0:{place.console}",
                 "--console-accounts-file", file]
        file.write_text("# nobody\n")
        self.assertIn("accounts", self.run_program("serve", *flags).words)
        password = self.directory / "password"
        password.write_text(f"{PASSWORD}\n")
        file.write_text(self.run_program("user", "hash", "root", "--role", "admin", "--password-file", password).output)
        file.chmod(0o644)
        tracker = self.lets_in_who_has_logged_in(place, flags)
        self.assertIn(f"chmod o= {file}", tracker.words)
        # In a cluster that has no master, nothing of a file is in force, and yet nobody is let in.
        tracker.signal(signal.SIGTERM)
        self.assertEqual(tracker.wait(20), 0)
        alone, key = self.place(), self.directory / "cluster.key"
        key.write_text(os.urandom(32).hex())
        key.chmod(0o600)
        flags = ["--udp", f"127.0.0.1:{alone.udp}", "--data", alone.data, "--console", f"0.0.0.0:{alone.console}",
                 "--console-accounts-file", file, "--id", 1, "--members", "1,2", "--cluster-key-file", key,
                 "--bus", f"multicast://239.192.7.9:{free_port()}?interface=lo"]
        waiting = self.program("serve", *flags)
        console = Console(alone.console)

        def status():
            with contextlib.suppress(OSError):
                return console.get("status", Host="localhost").status
        wait_until(lambda: status() or waiting.status is not None, 20, lambda: waiting.words)
        self.assertEqual(status(), 401, waiting.words)
        evil = console.ask("PUT", "users/evil", {"role": "admin", "password": PASSWORD}, {"Host": "localhost"})
        self.assertEqual(evil.status, 401)
        # Whether a password is right nobody can say yet: that is no wrong one, and costs no attempt.
        self.assertEqual(console.log_in("root").status, 503)

    def lets_in_who_has_logged_in(self, place, flags):
        again = self.program("serve", *flags)
        wait_until(lambda: self.is_there(place) or again.status is not None, 20, again.words)
        self.assertIsNone(again.status, again.words)
        console = Console(place.console)
        self.assertEqual(console.get("status").status, 401)
        self.assertEqual(console.get("status", Host="localhost").status, 401)
        self.assertEqual(console.ask("PUT", "users/evil", {"role": "admin", "password": PASSWORD}).status, 401)
        wait_until(lambda: console.log_in("root").status == 201, 10, lambda: again.words)
        self.assertEqual(console.get("status", Host="tracker.example").status, 200)
        return again

    def is_there(self, place):
        with contextlib.suppress(OSError):
            return Console(place.console).get("/healthz").status == 200


class FileAccounts(ThreeTrackers):
    """Accounts that trackers read from a file, beside those of the console."""

    def setUp(self):
        self.file, self.hashes = self.directory / "accounts.txt", {}
        self.write(("root", "admin"), ("fay", "viewer"))
        self.extra = ("--console-accounts-file", self.file)
        super().setUp()

    def write(self, *accounts):
        self.file.write_text("".join(map(self.line, *zip(*accounts))))
        self.file.chmod(0o600)

    def line(self, name, role):
        # With another salt it would be another password, which ends the sessions.
        if name not in self.hashes:
            made = self.run_program("user", "hash", name, "--role", role, "--password-file", self.password_file())
            self.hashes[name] = made.output.split()[2]
        return f"{name} {role} {self.hashes[name]}\n"

    def wait_for_master(self, *among, **options):
        # Whoever asks has to be logged in, and the accounts are in force as soon as there is a master.
        if self.admin is None:
            wait_until(lambda: self.log_in(among or tuple(self.trackers)), 40, "somebody can log in")
        return super().wait_for_master(*among, **options)

    def cluster(self, number):
        # A tracker that lags behind does not know the session yet, nor, in the first moments, the account.
        with contextlib.suppress(OSError, http.client.HTTPException):
            if self.root(number).get("sessions").status != 401:
                return super().cluster(number)
        return None

    def log_in(self, among):
        for number in among:
            # Not so often from one address that it has to wait.
            self.attempts = getattr(self, "attempts", 0) + 1
            console = self.console(number, source=f"127.0.4.{self.attempts % 200 + 1}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                if console.log_in("root").status == 201:
                    self.admin = console.session
                    return True
        return False

    def users(self, number):
        return {one["name"]: (one["role"], one["origin"]) for one in self.root(number).get("users").json["users"]}

    def test_they_are_those_of_the_file_and_what_the_console_has_stays(self):
        files = {"root": ("admin", "file"), "fay": ("viewer", "file")}
        self.assertEqual([self.users(number) for number in self.places], [files] * 3)
        self.assertEqual(self.console(2).get("status").status, 401)
        for method, body in [("PUT", {"role": "admin", "password": PASSWORD}), ("DELETE", None)]:
            answer = self.root(1).ask(method, "users/fay", body)
            self.assertEqual(answer.status, 409)
            self.assertIn("comes from a tracker's file", answer.error)
        fay = self.console(2)
        self.assertEqual(fay.log_in("fay").status, 201)
        self.assertEqual(fay.ask("PUT", "users/fay", {"password": "another password"}).status, 409)
        self.make("cora", "operator")
        kept = {"root": ("admin", "file"), "cora": ("operator", "console")}

        # Read again by the master: what the file has no more goes, and what the console has stays and wins.
        self.write(("root", "admin"), ("cora", "admin"), ("gus", "uploader"))
        self.trackers[3].signal(signal.SIGHUP)
        after = kept | {"gus": ("uploader", "file")}
        wait_until(lambda: self.users(1) == after, 20, lambda: f"{after}: {self.users(1)}")
        wait_until(lambda: "left-out=1" in self.trackers[3].words, 5, lambda: self.trackers[3].words)
        self.wait_for_session(fay.session, 401)

        # A file with a mistake changes nothing, and says why.
        self.file.write_text("nonsense\n")
        self.trackers[3].signal(signal.SIGHUP)
        wait_until(lambda: f"{self.file}:1" in self.trackers[3].words, 10, lambda: self.trackers[3].words)
        self.assertEqual(self.users(2), after)

        # They are in the log like all else: there after the master has died, and after a restart of everybody.
        self.trackers[3].kill()
        self.wait_for_master(1, 2)
        self.assertEqual([self.users(number) for number in (1, 2)], [after] * 2)
        self.write(("root", "admin"), ("hal", "viewer"))
        for number in (1, 2):
            self.trackers[number].stop()
        for number in self.places:
            self.begin(number)
        self.wait_for_master()
        wait_until(lambda: self.users(2) == kept | {"hal": ("viewer", "file")}, 20, lambda: f"{self.users(2)}")

    def test_without_an_admin_they_stay_as_they_are(self):
        before = self.users(1)
        self.write(("fay", "viewer"))
        self.trackers[3].signal(signal.SIGHUP)
        wait_until(lambda: "no admin would be left" in self.trackers[3].words, 10, lambda: self.trackers[3].words)
        self.assertEqual(self.users(2), before)


class Passkeys(ThreeTrackers):
    """A private cluster: clients are let in by the passkeys of accounts."""

    extra = ("--access", "private")
    HASH = "0123456789abcdef0123456789abcdef01234567"

    def urls(self, passkey, among):
        for number in among or tuple(self.places):
            place = self.places[number]
            for path in [f"{passkey}/announce", f"announce?passkey={passkey}"]:
                yield f"udp://127.0.0.1:{place.udp}/{path}"  # The options of BEP 41.
                yield f"http://127.0.0.1:{place.http}/{path}"

    def refusals(self, passkey, *among):
        """What each tracker says to an announce, over UDP and over HTTP; nothing where it lets it in."""
        programs = [self.program("announce", url, self.HASH) for url in self.urls(passkey, among)]
        for program in programs:
            self.assertIn(program.wait(30), (0, 1), program.words)
        return {next((why for why in ("unknown passkey", "needs your passkey") if why in program.words), program.words)
                if program.status else "" for program in programs}

    def wait_for(self, passkey, *among, refusals):
        wait_until(lambda: self.refusals(passkey, *among) == refusals, 10, lambda: self.refusals(passkey, *among))

    def passkey(self, number, session, method="GET", name="ann", status=200, **options):
        answer = self.console(number, session).ask(method, f"users/{name}/passkey", **options)
        self.assertEqual(answer.status, status, answer)
        return answer.json

    def test_it_lets_in_everywhere_until_it_is_renewed_or_taken_away_or_its_account_is_gone(self):
        self.make_admin()
        ann, bob = self.make("ann", "viewer"), self.make("bob", "operator")
        self.passkey(1, ann, status=404)
        first = self.passkey(1, ann, "PUT")
        self.assertRegex(first["passkey"], "^[0-9a-f]{32}$")
        self.wait_for(first["passkey"], refusals={""})
        self.assertEqual(self.refusals("0" * 32), {"unknown passkey"})
        # The URLs that it tells are good as they are.
        self.assertEqual(len(first["announce"]), 3)
        for url in first["announce"]:
            self.assertEqual(self.run_program("announce", url, self.HASH).status, 0, url)

        # Its owner and admins see it; nobody else, and it is in no log.
        for number in self.places:
            for session in (ann, self.admin):
                self.assertEqual(self.passkey(number, session)["passkey"], first["passkey"])
            for method in ("GET", "PUT", "DELETE"):
                self.passkey(number, bob, method, status=403)
            self.assertNotIn(first["passkey"], self.trackers[number].words)
        users = {one["name"]: one["hasPasskey"] for one in self.root(2).get("users").json["users"]}
        self.assertEqual(users, {"root": False, "ann": True, "bob": False})

        # It stays when something else of the account is changed, and a failover keeps it.
        self.assertEqual(self.root(2).ask("PUT", "users/ann", {"role": "uploader"}).status, 200)
        self.trackers[3].kill()
        self.wait_for_master(1, 2)
        self.assertEqual(self.refusals(first["passkey"], 1, 2), {""})
        second = self.passkey(2, ann, "PUT")["passkey"]
        self.wait_for(first["passkey"], 1, 2, refusals={"unknown passkey"})
        self.assertEqual(self.refusals(second, 1, 2), {""})
        # Who comes back knows it, too, and refuses the one that was good when it left.
        self.begin(3)
        self.wait_for_master()
        self.assertEqual(self.refusals(second), {""})
        self.assertEqual(self.refusals(first["passkey"]), {"unknown passkey"})

        self.assertEqual(self.passkey(3, ann, "DELETE"), {"name": "ann", "passkey": None, "announce": []})
        self.wait_for(second, refusals={"unknown passkey"})
        third = self.passkey(3, self.admin, "PUT")["passkey"]
        self.wait_for(third, refusals={""})
        self.assertEqual(self.root(1).ask("DELETE", "users/ann").status, 200)
        self.wait_for(third, refusals={"unknown passkey"})
        self.restart(1)
        self.wait_for_master()
        self.assertEqual(self.refusals(third), {"unknown passkey"})

    def test_the_command_makes_one_and_takes_it_away(self):
        self.make_admin()
        token = self.directory / "token"
        token.write_text(self.root(1).ask("POST", "sessions/tokens", {"label": "commands"}).json["token"] + "\n")
        token.chmod(0o600)
        options = ("--token-file", token)
        wait_until(lambda: self.run_program("user", "list", "--console", f"127.0.0.1:{self.places[2].console}",
                                            *options).status == 0, 10, "the token is known")
        lines = self.user_command(2, "passkey", "root", *options).output.splitlines()
        self.wait_for(lines[0], refusals={""})
        self.assertTrue(all(f"/{lines[0]}/announce" in line for line in lines[1:]), lines)
        self.assertEqual(self.user_command(2, "list", *options).output.split()[-4:], ["root", "admin", "console", "yes"])
        self.assertIn("no account", self.user_command(2, "passkey", "nobody", *options, status=1).words)
        self.assertIn("no passkey any more", self.user_command(2, "passkey", "root", "--remove", *options).output)
        self.wait_for(lines[0], refusals={"unknown passkey"})


class Newcomer(ThreeTrackers):

    def test_a_tracker_that_knows_nobody_yet_obeys_nobody(self):
        """Its disk is replaced: until it has the cluster's state it knows of no account, and yet there are some."""
        self.make_admin()
        for number in (2, 1):
            self.trackers[number].kill()
            shutil.rmtree(self.places[number].data)
            self.slips_in_nowhere(number)

    def test_a_tracker_that_has_missed_the_first_account_obeys_nobody(self):
        """Its record is whole, and of a time when whoever was on its machine could do all."""
        self.trackers[1].kill()
        self.wait_for_master(2, 3)
        self.make_admin(2, among=(2, 3))
        self.slips_in_nowhere(1)

    def slips_in_nowhere(self, number):
        """Begins a tracker, and asks of it what only an admin may, from its own machine, until it knows that."""
        self.begin(number)
        statuses, console = [], self.console(number)
        evil = [("PUT", "users/evil", {"role": "admin", "password": PASSWORD}), ("POST", "torrents", torrent())]

        def is_known():
            with contextlib.suppress(OSError, http.client.HTTPException):
                statuses.extend(console.ask(*order).status for order in evil)
                return statuses[-2:] == [401, 401]
        wait_until(is_known, 40, lambda: f"it has joined; {statuses}")
        self.wait_for_master()
        self.assertTrue(set(statuses) <= {401, 503}, statuses)
        self.assertEqual([one["name"] for one in self.root(3).get("users").json["users"]], ["root"])
        self.assertEqual(self.root(3).get("torrents").json["total"], 0)


class ClassicNewcomer(Newcomer):
    profile = ("--profile", "classic")


class MissedAccount(ThreeTrackers):
    """That there are no accounts a tracker does not believe any more when it may have missed the first."""

    evil = {"role": "admin", "password": PASSWORD}

    def test_whoever_is_cut_off_makes_no_account_and_elects_nobody(self):
        number = self.slave()
        others = [other for other in self.places if other != number]
        self.assertEqual(self.console(number).ask("POST", "faults", {"from": "bus", "seconds": 6}).status, 201)
        self.make_admin(others[0], among=others)
        self.asks_until_known(number)

    def test_whoever_was_stopped_makes_no_account_when_it_goes_on(self):
        number = self.slave()
        others = [other for other in self.places if other != number]
        self.assertEqual(self.console(number).ask("POST", "node/stop", {}).status, 200)
        self.make_admin(others[0], among=others)
        self.assertEqual(self.console(number).ask("PUT", "users/evil", self.evil).status, 503)
        self.assertIn(self.console(number).ask("POST", "node/start", {}).status, (200, 202))
        self.asks_until_known(number)

    def test_of_two_first_accounts_one_is_made(self):
        """All are asked for while nobody knows of any."""
        answers = {}

        def make(number):
            answers[number] = self.console(number).ask("PUT", f"users/admin-{number}", self.evil).status
        threads = [threading.Thread(target=make, args=(number,)) for number in self.places]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(answers.values())[0], 201, answers)
        self.assertTrue(set(sorted(answers.values())[1:]) <= {401, 409}, answers)

    def slave(self):
        master = self.wait_for_master()
        return next(number for number in self.places if number != master)

    def asks_until_known(self, number):
        """Asks of a tracker what only an admin may, until it knows that; it never does it."""
        statuses, console = [], self.console(number)
        orders = [("PUT", "users/evil", self.evil), ("POST", "cluster/election", {}),
                  ("POST", "cluster/stop", {"name": "swarmkeeper"})]

        def is_known():
            with contextlib.suppress(OSError, http.client.HTTPException):
                statuses.extend(console.ask(*order).status for order in orders)
            return statuses[-3:] == [401] * 3
        wait_until(is_known, 40, lambda: f"it knows of the account; {statuses}")
        self.wait_for_master()
        self.assertTrue(set(statuses) <= {401, 409, 503, 504}, statuses)
        self.assertEqual([one["name"] for one in self.root(number).get("users").json["users"]], ["root"])


class Secrets(ThreeTrackers):

    def test_they_are_in_no_log_no_process_list_and_no_record(self):
        password, seen, stopped = f"secret {os.urandom(8).hex()}", [], threading.Event()

        def look():
            while not stopped.is_set():
                for process in pathlib.Path("/proc").iterdir():
                    with contextlib.suppress(OSError):
                        for name in ("cmdline", "environ"):
                            seen.append((process / name).read_bytes() if process.name.isdigit() else b"")
                            if password.encode() in seen.pop():
                                seen.append(str(process).encode())
                                return
        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            self.user_command(1, "add", "root", "--role", "admin", "--password-file", self.password_file(password))
            console = self.console(1)
            self.assertEqual(console.log_in("root", password).status, 201)
            self.assertEqual(self.console(2).log_in("root", f"{password}x").status, 401)
            token = console.ask("POST", "sessions/tokens", {"label": "x"}).json["token"]
            self.admin = console.session
            self.wait_for_session(self.admin)
            console.ask("PUT", "users/eve", {"role": "viewer", "password": password})
            console.ask("PUT", "users/eve", {"role": 1, "password": password})
            console.ask("GET", f"status?password={password.replace(' ', '%20')}")
        finally:
            stopped.set()
            watcher.join()
        self.assertEqual(seen, [])
        for number in self.places:
            self.restart(number)
            self.wait_for_master()
        hidden = [secret.encode() for secret in (password, console.session, token)]
        read = 0
        for number, place in self.places.items():
            if number == 1:
                logs = [log.read_text() for log in place.directory.glob("*.log")]
                self.assertTrue(any("root has logged in" in log for log in logs), "the log is looked at")
            for file in [*place.directory.rglob("*.log"), *place.data.rglob("*")]:
                if not file.is_file():
                    continue
                content = file.read_bytes()
                read += len(content)
                for secret in hidden:
                    self.assertNotIn(secret, content, f"{file} has a secret")
                if file.is_relative_to(place.data):
                    # The group may read, which monitors need; of passwords it finds hashes.
                    self.assertEqual(stat.S_IMODE(file.stat().st_mode) & 0o027, 0, f"others can read {file}")
            self.assertIn(b"root", b"".join(file.read_bytes() for file in place.data.rglob("*") if file.is_file()))
        self.assertGreater(read, 0)

    def test_no_flag_takes_a_password(self):
        for flag in ["--password", "--pass"]:
            refused = self.run_program("user", "add", "root", "--role", "admin", flag, PASSWORD)
            self.assertIn("Unknown option", refused.words)
        refused = self.run_program("user", "add", "root", "--role", "admin")
        self.assertNotEqual(refused.status, 0, refused.words)
        self.assertIn("--password-file", refused.words)


class Expiry(TrackerTest):

    def test_sessions_and_tokens_end_by_the_clock(self):
        library = self.directory / "shifted_clock.so"
        subprocess.run(["cc", "-O1", "-Wall", "-shared", "-fPIC", "-o", library, SHIFTED_CLOCK, "-ldl"], check=True)

        def later(hours):
            return {"environment": {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(int(hours * 3600))}}
        place = self.place()
        tracker = self.serve(place, **later(0))
        console = Console(place.console)
        self.assertEqual(console.ask("PUT", "users/root", {"role": "admin", "password": PASSWORD}).status, 201)
        self.assertEqual(console.log_in("root").status, 201)
        token = console.ask("POST", "sessions/tokens", {"label": "x", "days": 1}).json["token"]
        for hours, cookie, bearer in [(11.9, 200, 200), (12.1, 401, 200), (23.9, 401, 200), (24.1, 401, 401)]:
            tracker.stop()
            tracker = self.serve(place, **later(hours))
            self.assertEqual((console.get("status").status, Console(place.console, token=token).get("status").status),
                             (cookie, bearer), f"after {hours} h")
        self.assertEqual(Console(place.console).log_in("root").status, 201)


class SlowStrangers(ThreeTrackers):

    def test_connections_that_bring_nothing_shut_out_nobody(self):
        """Sockets that say half of a request, from one address; a body that is promised and does not come."""
        self.make_admin()
        held = []
        begun = [b"", b"GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n",
                 b"POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                 b"Content-Length: 16000\r\n\r\n{",
                 b"POST /api/v1/torrents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-bittorrent\r\n"
                 b"Content-Length: 8000000\r\n\r\nd"]
        for number in range(200):
            held.append(self.stack.enter_context(socket.create_connection(("127.0.0.1", self.places[1].console), 10)))
            with contextlib.suppress(OSError):
                held[-1].sendall(begun[number % len(begun)])
        other = self.console(1, self.admin, source="127.0.0.7")
        self.assertEqual(other.get("status").status, 200)
        self.assertEqual(other.ask("POST", "torrents", torrent()).status, 201)
