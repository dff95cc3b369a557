"""`tracker doctor` where the bus does not reach: consoles that are named are asked, and one table says it all."""

import json
import os
import shutil
import subprocess
import unittest

import cluster
from namespaces import wait_until
from world import tracker_program

setUpModule = cluster.require_cluster

TOKEN = "0123456789abcdef0123456789abcdef"
FAILED, UNAVAILABLE = 1, 69


class Doctor(unittest.TestCase):
    """The consoles are on the network here, so there is a token for them."""

    def trackers(self, **options):
        return cluster.Cluster("multicast", is_mute=True, flags=["--log-level", "info"], **options)

    def begin(self, trackers, *flags_by_member):
        """Starts all trackers anew, without memory, each with flags of its own."""
        self.token = trackers.directory / "token"
        self.token.write_text(TOKEN + "\n")
        self.token.chmod(0o600)
        for member, flags in zip(trackers.members, flags_by_member, strict=True):
            member.kill()
            shutil.rmtree(member.directory / "data")
            (member.directory / "data").mkdir()
            member.start("--console", f"0.0.0.0:{cluster.CONSOLE}", "--console-token-file", self.token, *flags)

    def console(self, member):
        return f"{member.host.ipv4}:{cluster.CONSOLE}"

    def doctor(self, asker, *members, consoles=(), is_json=True):
        """Asks some trackers' consoles from the host of one: the exit code and what was printed."""
        command = [tracker_program(), "doctor", "--token-file", self.token, *(["--json"] if is_json else [])]
        for console in [*map(self.console, members), *consoles]:
            command += ["--console", console]
        with asker.host.entered():
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout, done.stderr

    def wait_for(self, asker, members, *texts, consoles=(), reports=0):
        """Waits until the doctor says all of it, and so many trackers have told of themselves; returns the report."""
        report = {}

        def says_all():
            nonlocal report
            code, output, words = self.doctor(asker, *members, consoles=consoles)
            report = json.loads(output) if output else {"words": words}
            found = {(finding.get("tracker"), finding["text"]) for finding in report.get("findings", [])}
            told_of = [each for each in report.get("trackers", []) if "report" in each]
            return code == FAILED and len(told_of) >= reports and all(
                any(number == told and text in said for told, said in found) for number, text in texts)
        wait_until(says_all, 40, lambda: f"{texts} in {json.dumps(report, indent=1)}")
        return report

    def test_a_tracker_with_another_key(self):
        with self.trackers() as trackers:
            first, second, third = trackers.members
            key = third.directory / "other.key"
            key.write_text(os.urandom(32).hex())
            key.chmod(0o600)
            self.begin(trackers, (), (), ("--cluster-key-file", key))
            # Asked alone, one of them knows of the other two what the bus tells: nothing of the third.
            report = self.wait_for(first, [first], (1, "another key ("), (1, "waits for tracker 3"))
            self.assertEqual([each["id"] for each in report["trackers"] if each["wasAsked"]], [1])
            self.assertNotIn(3, [each["id"] for each in report["trackers"] if each.get("report")])
            # Asked both, all is in one table: what each sees, and that they do not hear each other.
            report = self.wait_for(
                first, [first, third], (1, "another key ("), (3, "another key ("),
                (1, "it does not hear tracker 3, which answers on its console"),
                (3, "it does not hear tracker 1, which answers on its console"), reports=3)
            self.assertEqual([each["id"] for each in report["trackers"]], [1, 2, 3])
            self.assertEqual([each["wasAsked"] for each in report["trackers"]], [True, False, True])
            self.assertFalse(report["isWell"])
            refused = [finding["text"] for finding in report["findings"]
                       if finding.get("tracker") == 3 and "another key" in finding["text"]]
            self.assertTrue(any(first.host.ipv4 in text for text in refused), refused)
            # As people read it: a column for each, and a line for each finding.
            code, text, _ = self.doctor(first, first, third, is_json=False)
            self.assertEqual(code, FAILED)
            self.assertRegex(text, r"(?m)^tracker +1 +2 +3 *$")
            self.assertRegex(text, r"(?m)^told by +itself +the bus +itself *$")
            self.assertIn("! tracker 3: another key (", text)

    def test_trackers_with_other_members(self):
        with self.trackers() as trackers:
            first, second, third = trackers.members
            # Flags that come several times add up: tracker 2 knows of a fourth member.
            self.begin(trackers, (), ("--members", 4), ())
            report = self.wait_for(
                first, [first, second], (1, "other members at tracker 2"), (2, "other members at trackers 1 and 3"))
            self.assertEqual([each["id"] for each in report["trackers"] if each["wasAsked"]], [1, 2])
            self.assertFalse(report["isWell"])

    def test_a_console_that_nobody_has(self):
        with self.trackers(count=1) as trackers:
            only = trackers.members[0]
            self.begin(trackers, ())
            nobody = f"{trackers.probe.ipv4}:{cluster.CONSOLE}"
            report = self.wait_for(
                only, [only], (None, f"the console at {nobody} could not be asked"), consoles=[nobody])
            self.assertEqual([each["id"] for each in report["trackers"]], [1])
            code, output, _ = self.doctor(only, consoles=[nobody])
            self.assertEqual(code, UNAVAILABLE, output)
            self.assertEqual([finding["text"].startswith(f"the console at {nobody} ")
                              for finding in json.loads(output)["findings"]], [True])


if __name__ == "__main__":
    unittest.main()
