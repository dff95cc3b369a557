"""Numbers and addresses that are changed at the console of a tracker that is stopped."""

import signal
import socket
import stat

import bep15
from consoles import CLUSTER, Console, ThreeTrackers
from serving import TrackerTest, free_port, require_tracker, wait_until


def setUpModule():
    require_tracker()


def by_key(answer):
    return {one["key"]: one for one in answer.json["settings"]}


class Settings(TrackerTest):
    """One tracker, alone."""

    def setUp(self):
        self.home = self.place()
        self.tracker = self.serve(self.home)
        self.console = Console(self.home.console)
        self.kept = self.home.data / "console.toml"

    def switch(self, what, status=200):
        answer = self.console.ask("POST", f"node/{what}", {"name": CLUSTER})
        self.assertEqual(answer.status, status, answer)
        return answer

    def put(self, settings, status=200, keep=False, **headers):
        answer = self.console.ask("PUT", "settings", {"settings": settings, "keep": keep}, headers)
        self.assertEqual(answer.status, status, answer)
        return answer

    def is_answered(self, port):
        with bep15.Client("127.0.0.1", port, timeout=0.3, tries=3) as client:
            try:
                return client.connect() is not None
            except (bep15.Silence, ConnectionError):
                return False

    def again(self, *flags, without=()):
        """The process anew, without some of the flags of its place."""
        self.tracker.signal(signal.SIGTERM)
        self.assertEqual(self.tracker.wait(20), 0, self.tracker.words)
        given = self.home.flags
        pairs = [pair for pair in zip(given[::2], given[1::2]) if pair[0] not in without]
        self.tracker = self.program("serve", *(part for pair in pairs for part in pair), *flags)
        wait_until(self.has_settings, 20, lambda: self.tracker.words)

    def has_settings(self):
        assert self.tracker.status is None, self.tracker.words
        try:
            return self.console.get("settings").status == 200
        except OSError:
            return False

    def test_while_it_runs_nothing_is_changed(self):
        for method, body in [("PUT", {"settings": {"id": 7}}), ("DELETE", None)]:
            answer = self.console.ask(method, "settings", body)
            self.assertEqual(answer.status, 409, answer)
            self.assertIn("stop it first", answer.error)
        self.assertEqual(by_key(self.console.get("settings"))["id"]["value"], "1")

    def test_all_that_is_wrong_is_told_at_once_and_nothing_is_taken(self):
        self.switch("stop")
        before = self.console.get("settings").content
        answer = self.put({
            "listen.udp": "nowhere", "listen.http": [f"127.0.0.1:{self.home.console}"], "id": -1,
            "storage.directory": "/tmp", "moon": 1, "cluster.entry": {"a": 1}}, status=422, keep=True)
        problems = {one["key"]: one["message"] for one in answer.json["problems"]}
        self.assertEqual(set(problems),
                         {"listen.udp", "id", "storage.directory", "moon", "cluster.entry"})
        self.assertIn("is not an IP address with a port", problems["listen.udp"])
        self.assertIn("until the process ends", problems["storage.directory"])
        self.assertEqual(self.console.get("settings").content, before)
        self.assertFalse(self.kept.exists())
        # What contradicts what is told by the same sentence as on the command line.
        answer = self.put({"listen.http": [f"127.0.0.1:{self.home.console}"]}, status=422)
        self.assertIn("give the console another port", answer.json["problems"][0]["message"])
        words = self.run_program("serve", *self.home.flags[:2], *self.home.flags[4:],
                                 "--http", f"127.0.0.1:{self.home.console}").words
        self.assertIn("give the console another port", words)
        self.switch("start")
        self.assertTrue(self.is_answered(self.home.udp))

    def test_another_port_answers_and_the_old_one_does_not(self):
        self.switch("stop")
        port, taken = free_port(), free_port()
        before = self.console.get("settings").headers["ETag"]
        answer = self.put({"listen.udp": f"127.0.0.1:{port}", "id": 5}, **{"If-Match": before})
        self.assertEqual(by_key(answer)["listen.udp"]["source"], "console")
        stale = self.put({"id": 6}, status=412, **{"If-Match": before})
        self.assertIn(answer.headers["ETag"], stale.error)
        self.switch("start")
        self.assertTrue(self.is_answered(port))
        self.assertFalse(self.is_answered(self.home.udp))
        status = self.console.get("status").json
        self.assertEqual(status["node"]["id"], 5)
        self.assertIn(f"127.0.0.1:{port}", [one["address"] for one in status["listeners"]])
        # A start that fails says why, and what was wrong can be changed.
        self.switch("stop")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind(("127.0.0.1", taken))
            self.put({"listen.udp": f"127.0.0.1:{taken}"})
            self.assertIn(str(taken), self.switch("start", status=409).error)
        self.put({"listen.udp": f"127.0.0.1:{port}"})
        self.switch("start")
        self.assertTrue(self.is_answered(port))
        # Nothing was kept: a new process has what its flags say.
        self.assertFalse(self.kept.exists())
        self.again()
        self.assertTrue(self.is_answered(self.home.udp))
        self.assertEqual(by_key(self.console.get("settings"))["listen.udp"]["source"], "flag")

    def test_what_is_kept_is_there_at_the_next_start_and_flags_go_before_it(self):
        self.switch("stop")
        port = free_port()
        answer = self.put({"listen.udp": f"127.0.0.1:{port}", "cluster.advertise": "udp://a.example:1/announce"},
                          keep=True)
        self.assertEqual(by_key(answer)["listen.udp"]["keptOverriddenBy"], "flag")
        self.assertEqual(stat.S_IMODE(self.kept.stat().st_mode), 0o600)
        self.switch("start")
        self.assertTrue(self.is_answered(port))
        # The flag goes before it, and it is said.
        self.again()
        told = by_key(self.console.get("settings"))["listen.udp"]
        self.assertEqual((told["source"], told["keptOverriddenBy"]), ("flag", "flag"))
        self.assertIn(str(port), told["kept"])
        self.assertIn("but --udp goes before it", self.tracker.words)
        self.assertTrue(self.is_answered(self.home.udp))
        self.assertEqual(self.console.get("status").json["advertised"], "udp://a.example:1/announce")
        # Without the flag it counts.
        self.again(without=("--udp",))
        self.assertTrue(self.is_answered(port))
        told = by_key(self.console.get("settings"))
        self.assertEqual(told["listen.udp"]["source"], "console")
        self.assertNotIn("keptOverriddenBy", told["listen.udp"])
        # What is forgotten is as before: the flags alone.
        self.switch("stop")
        answer = self.console.ask("DELETE", "settings")
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(by_key(answer)["listen.udp"]["source"], "default")
        self.assertFalse(self.kept.exists())

    def test_a_file_that_is_damaged_is_named_with_the_line_and_the_way_out(self):
        self.tracker.stop()
        for text, line, words in [
                ("id = 1\n[listen]\nudp = [\n", 3, "this is not TOML"), ("\nid = \"moon\"\n", 2, "is not a number"),
                ("[storage]\ndirectory = \"/tmp\"\n", 2, "nothing that the console keeps")]:
            with self.subTest(text=text):
                self.kept.write_text(text)
                program = self.run_program("serve", *self.home.flags)
                self.assertEqual(program.status, 78, program.words)
                self.assertIn(f"{self.kept}:{line}:", program.words)
                self.assertIn(words, program.words)
                self.assertIn("remove the file to start without it", program.words)


class Numbers(ThreeTrackers):

    def test_in_a_quorum_no_record_votes_under_the_number_of_another_member(self):
        master = self.cluster(1)["master"]
        number = next(one for one in (1, 2, 3) if one != master)
        other = next(one for one in (1, 2, 3) if one not in (master, number))
        console = self.root(number)
        self.assertEqual(console.ask("POST", "node/stop", {}).status, 200)
        answer = console.ask("PUT", "settings", {"settings": {"id": other}})
        self.assertEqual(answer.status, 422, answer)
        self.assertIn("is the number of another member", answer.json["problems"][0]["message"])
        self.assertEqual(console.ask("PUT", "settings", {"settings": {"id": number}}).status, 200)
        self.assertEqual(console.ask("POST", "node/start", {}).status, 200)
        self.wait_for_master()
