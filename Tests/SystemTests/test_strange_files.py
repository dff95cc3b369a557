"""Files that are not what they should be: nobody waits for a pipe, and secrets that everybody can read are told."""

import os
import signal

import bep15
from serving import TrackerTest, require_tracker, wait_until

setUpModule = require_tracker

CONFIGURATION = 78
"""The exit status of what is set up wrongly."""


class Pipes(TrackerTest):

    ALLOWED, OTHER = b"a" * 20, b"b" * 20

    def test_a_list_that_becomes_a_pipe(self):
        """To read it would never end, and neither would the tracker then."""
        listed = self.directory / "allowed.txt"
        listed.write_text(self.ALLOWED.hex() + "\n")
        tracker = self.serve(None, "--access", "allow", "--access-list", listed)
        listed.unlink()
        os.mkfifo(listed)
        tracker.signal(signal.SIGHUP)
        words = f"{listed}: this is no regular file but a pipe or a device; write it to a file"
        wait_until(lambda: "the rules in force are kept" in tracker.words and words in tracker.words, 10,
                   lambda: f"the pipe is told:\n{tracker.words}")
        peer = self.client(tracker)
        peer.announce(self.ALLOWED, 7_000, left=1)
        with self.assertRaisesRegex(bep15.TrackerError, "list"):
            peer.announce(self.OTHER, 7_000, left=1)
        # The reload is over, and a second one ends as well.
        tracker.signal(signal.SIGHUP)
        tracker.stop()

    def test_a_directory_of_torrents_with_a_pipe_in_it(self):
        torrents = self.directory / "torrents"
        torrents.mkdir()
        tracker = self.serve(None, "--torrents", torrents)
        os.mkfifo(torrents / "pipe.torrent")
        tracker.signal(signal.SIGHUP)
        wait_until(lambda: "pipe.torrent" in tracker.words, 10, lambda: f"the pipe is told:\n{tracker.words}")
        tracker.stop()

    def test_a_key_that_is_a_pipe(self):
        key = self.directory / "key"
        os.mkfifo(key, 0o600)
        tracker = self.start(self.place(), "--cluster-key-file", key, "--bus", "multicast://239.192.7.9:6971",
                             "--id", "1")
        self.assertEqual(tracker.wait(10), CONFIGURATION, tracker.words)
        self.assertIn(f"the cluster key file {key}: this is no regular file but a pipe or a device", tracker.words)


class Secrets(TrackerTest):

    def test_what_everybody_can_read_is_told_at_the_start(self):
        files = {name: self.directory / name for name in ("tracker.toml", "token", "users", "key")}
        files["tracker.toml"].write_text(
            "[cluster]\n"
            'bus = "stomp://trackers:p%40ss-of-ours@127.0.0.1:1"\n'
            'key-file = "key"\n'
            'mode = "survivor"\n'
            "[console]\n"
            'token-file = "token"\n'
            "[access]\n"
            'mode = "private"\n'
            'users = "users"\n')
        files["token"].write_text("0123456789abcdef" * 2 + "\n")
        files["users"].write_text("ann k3y-of-ann\n")
        files["key"].write_text("0" * 64 + "\n")
        for name, file in files.items():
            file.chmod(0o600 if name == "key" else 0o644)
        place = self.place()
        place.data.mkdir(mode=0o755)
        place.database.touch(0o644)
        place.database.chmod(0o644)
        expected = {"tracker.toml": "the broker's password", "token": "the console's token",
                    "users": "the users' passkeys"}

        def start():
            tracker = self.start(place, "--config", files["tracker.toml"])
            # It waits for a broker that is not there: the warnings come before.
            wait_until(lambda: "the bus is lost" in tracker.words, 30, lambda: f"it starts:\n{tracker.words}")
            tracker.stop(within=60)
            return tracker.words

        words = start()
        for name, what in expected.items():
            self.assertIn(f"everybody on this machine can read {what} in {files[name]} (mode 644); "
                          f"run: chmod o= {files[name]}", words)
        self.assertIn(f"everybody on this machine can read the cluster's secret and all addresses in {place.database}",
                      words)
        self.assertIn(f"the cluster key in {files['key']} is one byte over and over", words)
        for secret in ("p%40ss", "p@ss", "0123456789abcdef", "k3y-of-ann"):
            self.assertNotIn(secret, words)
        # Put right as it says, it is silent.
        for file in [files[name] for name in expected] + [place.database]:
            file.chmod(file.stat().st_mode & ~0o007)
        files["key"].write_text(os.urandom(32).hex())
        words = start()
        self.assertNotIn("everybody on this machine", words)
        self.assertNotIn("over and over", words)
