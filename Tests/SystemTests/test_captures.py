"""Captures, dissected by tshark with `examples/wireshark/swarmkeeper.lua`.

A simulated run is replayed as text and as a capture, and both must tell the same. The packets of a real
tracker are taken off the loopback interface with a raw socket, so that no capturing program is needed.
"""

import contextlib
import json
import pathlib
import re
import select
import shutil
import socket
import struct
import subprocess
import unittest

import bep15
from serving import TrackerTest, require_tracker

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "examples" / "wireshark" / "swarmkeeper.lua"
FAULTLESS = ["--faults", "none", "--injections", "none", "--without", "strangers"]
WORDED_ALIKE = {"KEEPALIVE", "SUSPECT", "ELECTION", "ANSWER", "COORDINATOR", "PREPARE", "OK", "ERROR", "COMMIT",
                "CONFIRM", "CONFIRMED", "FETCH", "ENTRIES", "FETCH-CHUNK", "CHUNK", "WELCOME-DONE", "HANDOVER", "LEAVE"}
"""Messages of which trace and dissector say all that they say in the same words."""


def setUpModule():
    require_tracker()
    if not shutil.which("tshark"):
        raise AssertionError("the system tests miss tshark: install Debian's package tshark")


def dissect(capture, *fields, only=""):
    """The fields of each packet, as lists of strings. A mistake of the dissector fails the test."""
    command = ["tshark", "-n", "-r", capture, "-X", f"lua_script:{SCRIPT}", "-T", "fields", "-E", "separator=\t",
               "-E", "aggregator=;", "-e", "_ws.malformed", "-e", "_ws.lua.text", "-e", "bep15.length",
               "-e", "skm.damaged"]
    for field in fields:
        command += ["-e", field]
    if only:
        command += ["-Y", only]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0 and "Lua" not in done.stderr, done.stderr
    packets = []
    for line in done.stdout.splitlines():
        *complaints, rest = line.split("\t", 4)
        assert not any(complaints), f"the dissector complains: {line}"
        packets.append(rest.split("\t"))
    return packets


def ethernet(frames):
    """Frames as a capture file."""
    head = struct.pack("!IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)
    return head + b"".join(struct.pack("!IIII", at, 0, len(frame), len(frame)) + frame
                           for at, frame in enumerate(frames))


def udp(payload, source=6970, target=6970):
    """A datagram from 10.0.0.1 to 239.192.7.7, over Ethernet; checksums of 0 are none."""
    data = struct.pack("!HHHH", source, target, 8 + len(payload), 0) + payload
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(data), 0, 0, 1, 17, 0, bytes([10, 0, 0, 1]),
                       bytes([239, 192, 7, 7]))
    return bytes(12) + b"\x08\x00" + head + data


class SimulatedRuns(TrackerTest):

    def replay(self, *arguments):
        """The report of a run, the lines of its trace without their columns, and its capture."""
        capture = self.directory / "run.pcapng"
        program = self.run_program("replay", *arguments, "--json", "--pcap", capture, within=60)
        self.assertEqual(program.status, 0, program.words)
        report = json.loads(program.output)
        lines = [(line.split(" │ ")[0].strip(), line.rsplit(" │ ", 1)[1]) for line in report["trace"][:-1]]
        return report, lines, capture

    def test_the_bus_says_what_the_trace_says(self):
        _, lines, capture = self.replay("3", "--profile", "paxos", *FAULTLESS)
        told = []
        for time, text in lines:
            who = re.match(r"tracker (\d+) ", text)
            for to, name, epoch, rest in re.findall(
                    r"; tells (all|\d+): ([A-Z-]+) \[(\d+\.\d+)\]([^;]*)", text):
                told.append((time, who[1], to, name, epoch, rest if name in WORDED_ALIKE else ""))
        shown = []
        for time, name, epoch, text in dissect(
                capture, "frame.time_epoch", "skm.name", "skm.epoch", "_ws.col.Info",
                only='frame.interface_name == "bus" && skm.name'):
            match = re.fullmatch(r"(?:part \d+ of \d+; )?(\d+) to (\w+): ([A-Z-]+) \[(\d+\.\d+)\](.*)", text)
            self.assertIsNotNone(match, text)
            self.assertEqual((name, epoch), (match[3], match[4]))
            seconds, digits = time.split(".")
            shown.append((f"{seconds}.{digits[:6]}", match[1], match[2], name, epoch,
                          match[5] if name in WORDED_ALIKE else ""))
        self.assertGreater(len(told), 500)
        self.assertLessEqual({"KEEPALIVE", "PREPARE", "OK", "COMMIT", "ELECTION", "FORWARD"}, {one[3] for one in told})
        self.assertEqual(told, shown)

    def test_entries_and_info_hashes_are_those_of_the_trace(self):
        _, lines, capture = self.replay("3", "--profile", "paxos", *FAULTLESS)
        text = "\n".join(line for _, line in lines)
        wanted = set(re.findall(r"client \d+ starts with ([0-9a-f]{40}) ", text))
        announced = {fields[0].replace(":", "") for fields in dissect(
            capture, "bep15.info_hash", only='bep15.direction == "request" && bep15.action == 1 && !skm')}
        logged, proposed = set(), []
        for hashes, index, count in dissect(
                capture, "ske.info_hash", "ske.index", "ske.updates", only='skm.name == "PREPARE"'):
            logged.update(filter(None, hashes.replace(":", "").split(";")))
            proposed.append((index, count))
        self.assertGreater(len(announced), 0)
        self.assertLessEqual(announced, wanted)
        self.assertEqual(logged, announced)
        self.assertEqual(
            proposed, re.findall(r"tells (?:all|\d+): PREPARE \[[\d.]+\] entry (\d+) \((\d+) updates?\)", text))
        answers = dissect(capture, "_ws.col.Info", only='bep15.direction == "reply" && bep15.action == 1')
        self.assertGreater(len(answers), 10)

    def test_faults_and_losses_are_told(self):
        report, lines, capture = self.replay("20", "--profile", "paxos")
        steps = [fields[0] for fields in dissect(capture, "syslog.msg", only='frame.interface_name == "steps"')]
        begun = [text for _, text in lines if re.search(r" begins: ", text)]
        self.assertGreater(len(begun), 3)
        for text in begun:
            cause, what = re.fullmatch(r"(.*?) begins: (.*), for [\d.]+ s", text).groups()
            self.assertIn(f"begins: {cause}: {what}", steps)
            self.assertIn(f"ends: {cause}: {what}", steps)
        whole = "\n".join(text for _, text in lines)
        masters = re.findall(r"(tracker \d+) .*; becomes master of epoch ([\d.]+)", whole)
        self.assertEqual([f"{name} becomes master of {epoch}" for name, epoch in masters],
                         [step for step in steps if "becomes master" in step])
        comments = [fields[0] for fields in dissect(
            capture, "frame.comment", only='frame.interface_name == "bus"')]
        self.assertTrue(any(re.search(r"LOST to \d", comment) for comment in comments))
        self.assertTrue(any(re.search(r"heard by \d+ after [\d.]+ ms", comment) for comment in comments))
        self.assertTrue(any(re.search(r"becomes master of .*; heard by", comment) for comment in comments))
        self.assertTrue(any(re.search(r"commits entry \d+; heard by", comment) for comment in comments))
        self.assertEqual(report["violations"], [])

    def test_a_part_of_a_trace(self):
        whole = self.run_program("replay", "20", "--profile", "paxos").output.splitlines()
        self.assertRegex(whole[0], "^columns: role, epoch promised, ")
        self.assertRegex(whole[1], r"^ +seconds │ tracker 1 +│ tracker 2 ")
        part = self.run_program(
            "replay", "20", "--profile", "paxos", "--from", "20", "--until", "30", "--tracker", "2", "--kind",
            "elections", "--kind", "faults").output.splitlines()
        self.assertGreater(len(part), 10)
        for line in part[2:-1]:
            time, _, text = line.split(" │ ")
            self.assertTrue(20 <= float(time) <= 30)
            self.assertRegex(text, r"^tracker 2 |tracker 2\b|^the world ")
        self.assertEqual(part[-1], whole[-1])
        state = self.run_program("replay", "20", "--profile", "paxos", "--at", "27.01", "--tracker", "2").output
        self.assertIn("tracker 2 at 27.010 s\n", state)
        self.assertNotIn("tracker 1 at ", state)
        self.assertRegex(state, r"\n  following +(tracker \d, master of epoch \d+\.\d, heard last at 2\d\.|nobody)")

    def test_what_makes_no_sense_is_refused(self):
        for arguments, words in [
                (["--kind", "vote"], ['no kind "vote"', "messages, elections, votes"]),
                (["--tracker", "77"], ['no tracker "77"', "there are 1, 2"]),
                (["--at", "3", "--from", "2"], ["leave out --from"]),
                (["--at=-1"], ["0 to 100000"])]:
            with self.subTest(arguments=arguments):
                program = self.run_program("replay", "20", "--profile", "paxos", *arguments)
                self.assertEqual((program.status, program.output), (2, ""))
                for word in words:
                    self.assertIn(word, " ".join(program.words.split()))


class Frames(TrackerTest):

    def capture(self, *payloads):
        path = self.directory / "made.pcap"
        path.write_bytes(ethernet([udp(payload) for payload in payloads]))
        return path

    def frame(self, kind, body, sequence=1):
        return b"SKB\x01" + struct.pack("!BIQQ", kind, 0x5349_4D55, 7, sequence) + body + bytes(16)

    def test_a_long_message_in_parts_is_put_together(self):
        chunk = bytes(3000)
        message = b"SKM\x03" + struct.pack("!IQBQIB", 3, 7, 0, 2, 3, 18) + struct.pack("!IQI", 5, 40, 3000) + chunk
        parts = [message[at:at + 1300] for at in range(0, len(message), 1300)]
        frames = [self.frame(2, struct.pack("!QQII", 0, 1, place, len(parts)) + part, place + 1)
                  for place, part in enumerate(parts)]
        # They overtake each other, and come again.
        path = self.capture(frames[2], frames[0], frames[0], frames[1])
        texts = [fields[0] for fields in dissect(path, "_ws.col.Info")]
        self.assertEqual(texts, ["part 3 of 3", "part 1 of 3", "part 1 of 3",
                                 "part 2 of 3; 3 to all: CHUNK [2.3] 5 as of entry 40, 3000 bytes"])

    def test_what_keeps_the_bus_whole(self):
        greeting = struct.pack("!QHQBQB", 5, 2, 0xA, 1, 0xB, 0)
        wanted = struct.pack("!QHQQ", 0xA, 1, 4, 6)
        packets = dissect(
            self.capture(self.frame(3, greeting), self.frame(4, wanted), self.frame(5, struct.pack("!Q", 2), 9)),
            "_ws.col.Info", "skb.greeting.proven", "skb.wanted.first", "skb.oldest")
        self.assertEqual([fields[0] for fields in packets], [
            "greeting: hears 2 sessions", "wants 1 gap of session 000000000000000a", "mark before frame 9"])
        self.assertEqual((packets[1][2], packets[2][3]), ("4", "2"))

    def test_a_report_says_who_is_heard(self):
        def report(echoes, heard):
            texts = b"".join(bytes([len(text)]) + text for text in (b"1.0", b"one.example", b"", b"127.0.0.1:6970", b""))
            body = texts + bytes([1, 0]) + struct.pack("!I", 250) + bytes(32 + 16 + 8) + struct.pack("!QQ", 1234, 99)
            body += bytes([len(echoes)]) + b"".join(struct.pack("!QQI", *echo) for echo in echoes)
            body += bytes([len(heard)]) + b"".join(struct.pack("!IH?", *one) for one in heard)
            message = b"SKM\x03" + struct.pack("!IQBQIB", 3, 7, 0, 2, 3, 24) + body
            return self.frame(1, struct.pack("!QI", 0, len(message)) + message)
        path = self.capture(report([(0xA, 5, 6)], [(1, 65535, False), (2, 1, True), (5, 2, True)]), report([], []))
        packets = dissect(path, "_ws.col.Info", "skm.report.host", "skm.report.announces", "skm.report.wall_time",
                          "skm.report.hears", "skm.report.silence", "skm.rest")
        self.assertEqual(packets, [
            ["3 to all: REPORT [2.3] hears 2, 5; not 1", "one.example", "250", "1234", "1;2;5", "65535;1;2", ""],
            ["3 to all: REPORT [2.3] hears nobody", "one.example", "250", "1234", "", "", ""]])

    def test_junk_stops_nothing(self):
        message = b"SKM\x03" + struct.pack("!IQBQIB", 3, 7, 0, 2, 3, 9) + struct.pack("!QQ", 4, 5)
        whole = self.frame(1, struct.pack("!QI", 0, len(message)) + message)
        cut = [whole[:size] for size in range(0, len(whole), 3)]
        path = self.capture(*cut, whole)
        done = subprocess.run(["tshark", "-n", "-r", path, "-X", f"lua_script:{SCRIPT}"], capture_output=True,
                              encoding="utf-8", timeout=60)
        self.assertNotIn("Lua", done.stdout + done.stderr)
        self.assertIn("3 to all: COMMIT [2.3] through entry 4", done.stdout.splitlines()[-1])


class RealTraffic(TrackerTest):

    def test_a_tracker_on_any_port_is_dissected(self):
        info_hash = bytes(range(20))
        tracker = self.serve()
        with contextlib.closing(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))) as ear:
            ear.bind(("lo", 0))
            client = self.client(tracker)
            client.connect()
            client.announce(info_hash, 6881, left=5, event=bep15.Event.STARTED)
            client.announce(info_hash, 6882, left=0)
            client.scrape(info_hash)
            frames = []
            while select.select([ear], [], [], 0.3)[0]:
                frame, (_, _, direction, *_) = ear.recvfrom(65536)
                # Loopback shows each packet twice: as it leaves, and as it comes.
                if direction != socket.PACKET_OUTGOING and tracker.place.udp.to_bytes(2, "big") in frame[34:38]:
                    frames.append(frame)
        path = self.directory / "real.pcap"
        path.write_bytes(ethernet(frames))
        packets = dissect(path, "bep15.direction", "bep15.action", "bep15.info_hash", "_ws.col.Info",
                          only=f"bep15 && udp.port == {tracker.place.udp}")
        kinds = [(fields[0], fields[1]) for fields in packets]
        for action in ("0", "1", "2"):
            self.assertIn(("request", action), kinds)
            self.assertIn(("reply", action), kinds)
        self.assertEqual(len(packets), len(frames))
        self.assertEqual({fields[2] for fields in packets if fields[2]}, {info_hash.hex()})
        self.assertTrue(any(fields[3] == "announced: 2 peers, 1 seeding, 1 leeching"
                            or fields[3] == "announced: 1 peer, 1 seeding, 1 leeching" for fields in packets),
                        [fields[3] for fields in packets])


if __name__ == "__main__":
    unittest.main()
