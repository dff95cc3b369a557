"""Three trackers on this machine's loopback, and those who ask their consoles: as programs, as browsers, and as strangers.

A tracker's console is asked by `Console`, with the cookie of a session, a token, or nothing. `ThreeTrackers` is a test
case with three of them, which agree on a master before it begins.
"""

import contextlib
import http.client
import json
import os

from serving import TrackerTest, free_port, wait_until

PASSWORD = "correct horse battery"
CLUSTER = "swarmkeeper"


class Answer:
    """What a console answered."""

    def __init__(self, status, headers, content):
        self.status, self.headers, self.content = status, headers, content

    @property
    def json(self):
        return json.loads(self.content)

    @property
    def error(self):
        """The sentence of a refusal; every refusal has one."""
        return self.json["error"]

    def __repr__(self):
        return f"{self.status} {dict(self.headers)} {self.content[:500]!r}"


class Console:
    """One console, asked by somebody who is logged in or not, from an address of this machine."""

    def __init__(self, port, session=None, token=None, source="127.0.0.1"):
        self.port, self.session, self.token, self.source = port, session, token, source

    @property
    def cookie_name(self):
        return f"swarmkeeper-{CLUSTER}-{self.port}"

    def ask(self, method, path, body=None, headers=None, timeout=120):
        """A body of bytes is a torrent, any other JSON; a header that is None is left out."""
        fields = {}
        if body is not None:
            is_file = isinstance(body, bytes)
            fields["Content-Type"] = "application/x-bittorrent" if is_file else "application/json"
            body = body if is_file else json.dumps(body).encode()
        if self.session:
            fields["Cookie"] = f"{self.cookie_name}={self.session}"
        if self.token:
            fields["Authorization"] = f"Bearer {self.token}"
        fields = {name: value for name, value in (fields | (headers or {})).items() if value is not None}
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=timeout, source_address=(self.source, 0))
        with contextlib.closing(connection):
            connection.request(method, f"/api/v1/{path}" if not path.startswith("/") else path, body, fields)
            reply = connection.getresponse()
            return Answer(reply.status, reply.headers, reply.read())

    def get(self, path, **headers):
        return self.ask("GET", path, headers=headers)

    def log_in(self, name, password=PASSWORD, **options):
        """Keeps the session where there is one now."""
        answer = self.ask("POST", "sessions", {"name": name, "password": password}, **options)
        if answer.status == 201:
            cookie = answer.headers["Set-Cookie"]
            assert cookie.startswith(f"{self.cookie_name}="), cookie
            self.session = cookie.split(";")[0].split("=", 1)[1]
        return answer


class ThreeTrackers(TrackerTest):
    """Three trackers and their consoles."""

    profile = ("--profile", "paxos", "--members", 1, "--members", 2, "--members", 3)
    extra = ()

    def setUp(self):
        key = self.directory / "cluster.key"
        key.write_text(os.urandom(32).hex())
        key.chmod(0o600)
        self.common = ["--bus", f"multicast://239.192.7.8:{free_port()}?interface=lo", "--cluster-key-file", key,
                       *self.profile, *self.extra]
        self.admin = None
        self.places = {number: self.place() for number in (1, 2, 3)}
        self.trackers = {}
        for number in self.places:
            self.begin(number)
        self.wait_for_master()

    def begin(self, number, **options):
        self.trackers[number] = self.start(self.places[number], "--id", number, *self.common, **options)

    def console(self, number, session=None, **options):
        return Console(self.places[number].console, session, **options)

    def root(self, number):
        """A console for somebody who may do all: an admin, once there is one."""
        return self.console(number, self.admin)

    def cluster(self, number):
        """The cluster as a tracker sees it; nothing where it does not answer."""
        try:
            answer = self.root(number).get("cluster")
        except (OSError, http.client.HTTPException):
            return None
        assert answer.status in (200, 503), answer
        return answer.json if answer.status == 200 else None

    def wait_for_master(self, *among, seconds=40):
        """Waits for a master that all of some trackers follow, all with the same state; its number."""
        among = among or tuple(self.trackers)

        def agreed():
            for number in among:
                status = self.trackers[number].status
                assert status is None, f"tracker {number} ended with status {status}:\n{self.trackers[number].words}"
            views = [self.cluster(number) for number in among]
            if not all(view and view["isServing"] and not view["isFenced"] for view in views):
                return None
            masters = {view["master"] for view in views}
            states = {(view["commitIndex"], view["digest"]) for view in views}
            # Those who miss a dead one have not noticed yet; nor does a master stay that is not the one they prefer.
            return masters.pop() if len(masters) == len(states) == 1 and masters == {max(among)} else None
        return wait_until(agreed, seconds, lambda: f"one master: {[self.cluster(number) for number in among]}")

    def restart(self, number):
        self.trackers[number].stop()
        self.begin(number)

    def password_file(self, password=PASSWORD):
        file = self.directory / f"password-{len(list(self.directory.iterdir()))}"
        file.write_text(f"{password}\n")
        file.chmod(0o600)
        return file

    def user_command(self, number, *words, status=0, **options):
        """`tracker user …` for a tracker's console."""
        program = self.run_program(
            "user", *words, "--console", f"127.0.0.1:{self.places[number].console}", **options)
        self.assertEqual(program.status, status, program.words)
        return program

    def make_admin(self, number=1, name="root", among=()):
        """Makes the first account, by the command, and logs it in; all trackers know it then, or those named."""
        self.user_command(number, "add", name, "--role", "admin", "--password-file", self.password_file())
        console = self.console(number)
        self.assertEqual(console.log_in(name).status, 201)
        self.admin = console.session
        self.wait_for_session(self.admin, among=among or (1, 2, 3))

    def make(self, name, role, number=1):
        """Makes an account; its session."""
        answer = self.root(number).ask("PUT", f"users/{name}", {"role": role, "password": PASSWORD})
        self.assertEqual(answer.status, 201, answer)
        console = self.console(number)
        self.assertEqual(console.log_in(name).status, 201)
        self.wait_for_session(console.session)
        return console.session

    def statuses(self, session, *among):
        """What each console says to a session."""
        return [self.console(number, session).get("sessions").status for number in among or tuple(self.places)]

    def wait_for_session(self, session, status=200, among=(1, 2, 3)):
        wait_until(lambda: set(self.statuses(session, *among)) == {status}, 10,
                   lambda: f"{status} at all: {self.statuses(session, *among)}")
