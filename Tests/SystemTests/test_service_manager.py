"""What systemd is told of a tracker: this test listens in its place (sd_notify)."""

import os
import signal
import socket
import time

from serving import TrackerTest, require_tracker

setUpModule = require_tracker

WATCHDOG = 2_000_000
"""Microseconds within which a sign of life is wanted."""


class ServiceManager(TrackerTest):

    def listen(self, name):
        """A socket of that name, which is a path or begins with @."""
        manager = self.stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        manager.bind("\0" + name[1:] if name.startswith("@") else name)
        manager.settimeout(120)
        return manager

    def manage(self, name, *flags):
        manager = self.listen(name)
        environment = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": str(WATCHDOG)}
        return manager, self.start(self.place(), *flags, environment=environment)

    def lines(self, manager, until):
        """The lines that come, up to one that begins so."""
        lines = []
        while not any(line.startswith(until) for line in lines):
            lines += manager.recv(4096).decode().splitlines()
        return lines

    def test_the_life_of_a_service(self):
        for name in [str(self.directory / "notify"), f"@swarmkeeper-{os.getpid()}-{time.monotonic_ns()}"]:
            with self.subTest(name=name):
                manager, tracker = self.manage(name)
                lines = self.lines(manager, "READY=1")
                self.assertEqual(lines[0], "STATUS=Reading the record")
                self.assertTrue(tracker.is_serving())
                self.lines(manager, "WATCHDOG=1")
                tracker.signal(signal.SIGHUP)
                lines = self.lines(manager, "RELOADING=1")
                stamp = int(lines[lines.index("RELOADING=1") + 1].removeprefix("MONOTONIC_USEC="))
                self.assertLess(abs(time.monotonic_ns() // 1000 - stamp), 20_000_000)
                self.lines(manager, "READY=1")
                tracker.signal(signal.SIGTERM)
                self.lines(manager, "STOPPING=1")
                self.assertEqual(tracker.wait(20), 0)
                # Nothing follows it but what was said with it.
                manager.setblocking(False)
                self.assertRaises(BlockingIOError, manager.recv, 4096)

    def test_heartbeats_come_and_stop_with_the_process(self):
        # That they come in time, ServiceManagerTests show by a clock of their own.
        manager, tracker = self.manage(str(self.directory / "notify"))
        self.lines(manager, "WATCHDOG=1")
        for _ in range(4):
            self.lines(manager, "WATCHDOG=1")
        tracker.signal(signal.SIGSTOP)
        manager.settimeout(0.2)
        silent = 0
        while silent < 2 * WATCHDOG / 1e6:
            try:
                manager.recv(4096)
                silent = 0
            except TimeoutError:
                silent += 0.2
        tracker.signal(signal.SIGCONT)
        manager.settimeout(120)
        self.lines(manager, "WATCHDOG=1")

    def test_a_tracker_that_waits_for_its_cluster_is_not_ready_and_asks_for_time(self):
        key = self.directory / "cluster.key"
        key.write_text("k" * 40)
        key.chmod(0o600)
        manager, _ = self.manage(
            str(self.directory / "notify"), "--bus", "stomp://127.0.0.1:9", "--cluster-key-file", key, "--members",
            "1,2,3", "--id", "1")
        lines = self.lines(manager, "EXTEND_TIMEOUT_USEC=")
        begin = time.monotonic()
        while time.monotonic() - begin < 3 or not any(line.startswith("STATUS=The bus is lost") for line in lines):
            lines += self.lines(manager, "WATCHDOG=1")
        self.assertNotIn("READY=1", lines)
