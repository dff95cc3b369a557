"""`tracker demo`: three processes that act as one, watched while they are killed."""

import json
import os
import re
import signal
import urllib.request

from serving import Program, TrackerTest, free_port, require_tracker, wait_until
from world import tracker_program

setUpModule = require_tracker

HASH = "0123456789abcdef0123456789abcdef01234567"


def is_alive(process):
    """Whether a process runs; one that has ended and waits to be fetched does not."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as status:
            return status.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Demo(TrackerTest):

    def setUp(self):
        # The demonstration uses a range of ports: all of them below those that the kernel gives to others.
        self.base = free_port()
        self.demo = Program(
            [tracker_program(), "demo", "--base-port", str(self.base)], self.directory / "demo.log",
            environment={"TMPDIR": str(self.directory)}, wrapper=["sh", "-c", 'exec "$0" "$@" > demo.txt'])
        self.programs.append(self.demo)
        wait_until(lambda: "What happens:" in self.told(), 60, self.told)
        rows = re.findall(r"^ +(\d) +(\d+) +udp:", self.told(), re.MULTILINE)
        self.processes = {int(tracker): int(process) for tracker, process in rows}
        self.assertEqual(sorted(self.processes), [1, 2, 3])

    def told(self):
        """What the demonstration has told so far."""
        path = self.directory / "demo.txt"
        return path.read_text() + self.demo.words if path.exists() else ""

    def view(self, tracker):
        """The cluster as a tracker sees it; nothing where it does not answer."""
        try:
            place = f"http://127.0.0.1:{self.base + 10 + tracker}/api/v1/cluster"
            with urllib.request.urlopen(place, timeout=5) as reply:
                return json.load(reply)
        except OSError:
            return None

    def announce(self, tracker, *flags):
        url = f"udp://127.0.0.1:{self.base + tracker}/announce"
        program = self.run_program("announce", url, HASH, "--json", *flags, within=60)
        self.assertEqual(program.status, 0, program.words)
        return json.loads(program.output)

    def test_the_master_is_killed_and_comes_back(self):
        self.announce(1, "--left", "0", "--port", "7777")
        # The first to stand may have been another; the one that is preferred is handed the role soon.
        wait_until(lambda: self.view(1)["master"] == 3, 30, lambda: self.view(1))
        os.kill(self.processes[3], signal.SIGKILL)
        # Asked while nobody is master: the answer is that of the next one.
        reply = self.announce(1, "--port", "8888")
        self.assertEqual(reply["seeders"], 1)
        self.assertIn("127.0.0.1:7777", [peer["address"] for peer in reply["peers"]])
        wait_until(lambda: (self.view(1) or {}).get("master") == 2, 20, lambda: self.view(1))
        wait_until(lambda: "tracker 3  was killed; it comes back" in self.told(), 5,
                   self.told)
        wait_until(lambda: (self.view(3) or {}).get("isServing"), 60, lambda: self.view(3))
        self.assertEqual(self.announce(3, "--port", "9999")["seeders"], 1)

    def test_whoever_tries_what_it_says_sees_one_peer_at_two_trackers(self):
        hints = re.findall(r"^ +\S+ (announce udp://.*)$", self.told(), re.MULTILINE)
        answers = [self.run_program(*hint.split(), "--json", within=60) for hint in hints]
        self.assertEqual([answer.status for answer in answers], [0, 0], [answer.words for answer in answers])
        self.assertEqual([len(json.loads(answer.output)["peers"]) for answer in answers], [0, 1])

    def test_an_interrupt_ends_everything(self):
        directory = re.search(r"all they keep is in (\S+),", self.told())[1]
        self.assertTrue(os.path.isdir(directory))
        self.demo.signal(signal.SIGINT)
        self.assertEqual(self.demo.wait(20), 0)
        self.assertFalse(os.path.exists(directory))
        for process in self.processes.values():
            self.assertFalse(is_alive(process))

    def test_no_tracker_outlives_the_demonstration(self):
        self.demo.kill()
        wait_until(lambda: not any(map(is_alive, self.processes.values())), 20, "the trackers live on")
