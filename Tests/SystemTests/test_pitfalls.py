"""What peers stumble over between each other, one test each: what others do by habit, by mistake, or on purpose.

Our peer is the real program; the others do what the test tells them (raw_peer.py). Much of it is in libtorrent's
tests: test_peer_connection, test_fast_extension, test_timeout, test_metadata_extension.
"""

import select
import struct
import time
import unittest

import raw_peer
from metainfo import Torrent, decode, encode
from peers import PeerTest
from raw_peer import (ALLOWED_FAST, BITFIELD, BLOCK, CANCEL, CHOKE, EXTENDED, EXTENSIONS, FAST, HAVE, HAVE_ALL,
                      HAVE_NONE, INTERESTED, NOT_INTERESTED, PIECE, PORT, REJECT, REQUEST, UNCHOKE, Closed, Metadata,
                      Seeder, Wire, bitfield, handshake, new_id, ready_to_take)
from serving import free_port, require_tracker, wait_until

setUpModule = require_tracker

MIB = 1 << 20

QUIET = 3
"""Seconds in which nothing is to come: what is wrongly sent is sent at once."""

FEW = 5
"""What a peer that forgets may ask once more for, without being called wasteful."""


def blocks(torrent):
    """All blocks of a torrent, as peers ask for them."""
    return [(piece, begin, min(BLOCK, len(torrent.piece(piece)) - begin))
            for piece in range(len(torrent.hashes))
            for begin in range(0, len(torrent.piece(piece)), BLOCK)]


class OurSeeder(PeerTest):
    """Our peer has it all; the other side wants it, and misbehaves."""

    def setUp(self):
        self.torrent = Torrent(self.id(), 40 * 65_536 + 5_000, is_private=False)
        self.count = len(self.torrent.hashes)
        self.seeder = self.seed(self.torrent)

    def dial(self, **options):
        return self.enterContext(Wire.dial(self.seeder.port, **options))

    def greeted(self, reserved=FAST | EXTENSIONS, **options):
        wire = self.dial(**options)
        wire.greet(self.torrent.info_hash, reserved)
        return wire

    def assert_gives(self, source="127.0.0.9"):
        """It lives, and gives another peer what is right."""
        self.assert_runs(self.seeder)
        wire = ready_to_take(self.dial(source=source), self.torrent)
        self.assertEqual(wire.fetch(1, BLOCK, BLOCK), self.torrent.piece(1)[BLOCK:2 * BLOCK])

    def test_the_first_48_bytes_of_a_handshake_are_answered_before_the_rest_comes(self):
        """Some send the peer id only after they have seen ours."""
        wire = self.dial()
        whole = handshake(self.torrent.info_hash, wire.peer_id)
        wire.raw(whole[:48])
        _, info_hash, peer_id = wire.hear_handshake()
        self.assertEqual(info_hash, self.torrent.info_hash)
        self.assertNotEqual(peer_id, wire.peer_id)
        wire.raw(whole[48:])
        wire.say(INTERESTED)
        wire.expect(UNCHOKE)
        self.assertEqual(wire.fetch(0, 0, BLOCK), self.torrent.piece(0)[:BLOCK])

    def test_a_handshake_that_comes_byte_by_byte_is_one(self):
        wire = self.dial()
        for byte in handshake(self.torrent.info_hash, wire.peer_id):
            wire.raw(bytes([byte]))
            time.sleep(0.01)
        wire.hear_handshake()
        wire.say(INTERESTED)
        wire.expect(UNCHOKE)

    def test_another_torrents_handshake_is_closed_without_an_answer(self):
        wire = self.dial()
        wire.raw(handshake(b"x" * 20, wire.peer_id))
        with self.assertRaises(Closed):
            wire.hear_handshake()
        self.assert_gives()

    def test_another_protocol_is_closed_without_an_answer(self):
        """An encrypted handshake looks like this, and HTTP does not look different."""
        for words in (b"GET / HTTP/1.1\r\n\r\n", bytes(range(128, 224)), b"\x13BitTorrent protocoL" + bytes(48)):
            with self.subTest(words=words[:20]):
                wire = self.dial()
                wire.raw(words)
                with self.assertRaises(Closed):
                    wire.hear_handshake()
        self.assert_gives()

    def test_who_says_nothing_is_dropped(self):
        wire = self.dial()
        wire.wait_closed(120)
        self.assert_gives()

    def test_who_says_its_handshake_too_slowly_is_dropped(self):
        """A byte now and then is no sign of life (slow loris)."""
        wire = self.dial()
        for byte in handshake(self.torrent.info_hash, wire.peer_id)[:40] * 4:
            wire.raw(bytes([byte]))
            if wire.is_closed:
                break
            time.sleep(1)
        wire.wait_closed(1)
        self.assert_gives()

    def test_it_takes_a_whole_copy_and_each_block_is_right(self):
        """The last piece and its last block are shorter."""
        wire = ready_to_take(self.dial(), self.torrent)
        got = {}
        for block in blocks(self.torrent):
            wire.request(*block)
        for _ in blocks(self.torrent):
            piece, begin, data = wire.block()
            got[piece, begin] = data
        self.assertEqual(b"".join(got[key] for key in sorted(got)), self.torrent.payload)

    def test_a_request_while_choked_is_rejected_with_the_fast_extension(self):
        wire = self.greeted()
        wire.say(HAVE_NONE)
        allowed = {struct.unpack("!I", payload)[0] for number, payload in wire.listen(2) if number == ALLOWED_FAST}
        piece = next(piece for piece in range(self.count) if piece not in allowed)
        block = struct.pack("!III", piece, 0, BLOCK)
        wire.say(REQUEST, block)
        self.assertEqual(wire.expect(REJECT), block)

    def test_a_request_while_choked_is_passed_over_in_silence_without_the_fast_extension(self):
        wire = self.greeted(reserved=0)
        wire.request(3, 0, BLOCK)
        numbers = {number for number, _ in wire.listen(QUIET)}
        self.assertFalse(numbers & {PIECE, REJECT, HAVE_ALL, HAVE_NONE, ALLOWED_FAST, EXTENDED}, wire.heard())
        wire.say(INTERESTED)
        wire.expect(UNCHOKE)
        self.assertEqual(wire.fetch(3, 0, BLOCK), self.torrent.piece(3)[:BLOCK])

    def test_who_has_nothing_may_have_some_pieces_while_choked(self):
        wire = self.greeted()
        wire.say(HAVE_NONE)
        piece, = struct.unpack("!I", wire.expect(ALLOWED_FAST))
        self.assertNotIn(UNCHOKE, [number for number, _ in wire.seen])
        self.assertEqual(wire.fetch(piece, 0, BLOCK), self.torrent.piece(piece)[:BLOCK])

    def test_the_pieces_that_are_allowed_fast_are_those_of_the_specification(self):
        """BEP 6 computes them from the address and the info hash, so that coming back does not get others."""
        sets = []
        for _ in range(2):
            with Wire.dial(self.seeder.port, source="127.0.7.7") as wire:
                wire.greet(self.torrent.info_hash)
                wire.say(HAVE_NONE)
                sets.append({struct.unpack("!I", payload)[0] for number, payload in wire.listen(2)
                             if number == ALLOWED_FAST})
        self.assertTrue(sets[0])
        self.assertEqual(*sets)

    def test_requests_that_name_no_block_get_no_bytes(self):
        whole = len(self.torrent.piece(0))
        last = len(self.torrent.piece(self.count - 1))
        wrong = {
            "a piece beyond the last": (self.count, 0, BLOCK),
            "the greatest number": (0xFFFF_FFFF, 0, BLOCK),
            "beyond the end of the piece": (0, whole, BLOCK),
            "over the end of the piece": (0, whole - 100, BLOCK),
            "over the end of the last piece": (self.count - 1, 0, last + 1),
            "numbers that overflow": (0, 0xFFFF_FFFF, 0xFFFF_FFFF),
            "no bytes": (0, 0, 0),
            "too many bytes": (0, 0, 1 << 20),
        }
        for name, block in wrong.items():
            with self.subTest(name), Wire.dial(self.seeder.port) as wire:
                ready_to_take(wire, self.torrent)
                wire.request(*block)
                heard = wire.listen(QUIET)
                self.assertNotIn(PIECE, [number for number, _ in heard])
                self.assertTrue(wire.is_closed or (REJECT, struct.pack("!III", *block)) in heard, wire.heard())
        self.assert_gives()

    def test_requests_of_other_lengths_than_ours_are_answered(self):
        wire = ready_to_take(self.dial(), self.torrent)
        for begin, length in ((0, 1), (1, 100), (16_000, 32_768), (0, 65_536)):
            self.assertEqual(wire.fetch(2, begin, length), self.torrent.piece(2)[begin:begin + length])

    def test_messages_that_nobody_knows_are_passed_over(self):
        wire = ready_to_take(self.dial(), self.torrent)
        for number in (10, 11, 18, 19, 21, 22, 23, 99, 255):
            wire.say(number, b"what is this")
        wire.say(EXTENDED, b"\xfa" + encode({"unheard": "of"}))
        self.assertEqual(wire.fetch(0, 0, BLOCK), self.torrent.piece(0)[:BLOCK])

    def test_a_dht_port_without_the_dht_bit_is_passed_over(self):
        wire = ready_to_take(self.dial(), self.torrent)
        wire.say(PORT, b"\x1a\xe1")
        self.assertEqual(wire.fetch(0, 0, BLOCK), self.torrent.piece(0)[:BLOCK])

    def test_many_signs_of_life_do_no_harm(self):
        wire = ready_to_take(self.dial(), self.torrent)
        wire.raw(bytes(4) * 100_000)
        self.assertEqual(wire.fetch(0, 0, BLOCK), self.torrent.piece(0)[:BLOCK])

    def test_a_huge_length_is_closed_and_memory_stays_bounded(self):
        _, before = self.seeder.memory()
        for size, number in ((0x7FFF_FFFF, 5), (0xFFFF_FFFF, 20), (0xFFFF_FFFF, PIECE), (64 << 20, 99)):
            with self.subTest(size=size, number=number), Wire.dial(self.seeder.port) as wire:
                wire.greet(self.torrent.info_hash)
                wire.raw(struct.pack("!IB", size, number))
                for _ in range(64):
                    wire.raw(bytes(MIB))
                    if wire.is_closed:
                        break
                self.assertTrue(wire.is_closed, "64 MiB were taken")
        _, after = self.seeder.memory()
        self.assertLess(after - before, 24 * MIB)
        self.assert_gives()

    def test_messages_of_a_wrong_length_are_closed(self):
        for number, payload in ((HAVE, b"abc"), (HAVE, bytes(5)), (REQUEST, bytes(11)), (REQUEST, b""),
                                (CANCEL, bytes(13)), (PIECE, bytes(7)), (INTERESTED, b"x" * 9), (EXTENDED, b"")):
            with self.subTest(number=number, payload=payload), Wire.dial(self.seeder.port) as wire:
                wire.greet(self.torrent.info_hash)
                wire.say(number, payload)
                wire.wait_closed()
        self.assert_gives()

    def test_bitfields_of_a_wrong_length_are_closed(self):
        right = (self.count + 7) // 8
        for size in (0, right - 1, right + 1, 200_000):
            with self.subTest(size=size), Wire.dial(self.seeder.port) as wire:
                wire.greet(self.torrent.info_hash)
                wire.say(BITFIELD, bytes(size))
                wire.wait_closed()
        self.assert_gives()

    def test_spare_bits_of_a_bitfield_are_closed(self):
        """BEP 3: "Clients should drop the connection if they receive bitfields … with any of the spare bits set." """
        self.assertNotEqual(self.count % 8, 0)
        wire = self.greeted()
        wire.say(BITFIELD, bytes((self.count + 7) // 8 - 1) + b"\x01")
        wire.wait_closed()
        self.assert_gives()

    def test_all_and_none_without_the_fast_extension_are_closed(self):
        for number in (HAVE_ALL, HAVE_NONE):
            with self.subTest(number=number), Wire.dial(self.seeder.port) as wire:
                wire.greet(self.torrent.info_hash, reserved=EXTENSIONS)
                wire.say(number)
                wire.wait_closed()
        self.assert_gives()

    def test_a_piece_beyond_the_last_is_closed(self):
        wire = self.greeted()
        wire.have(self.count)
        wire.wait_closed()
        self.assert_gives()

    def test_two_seeders_do_not_hold_each_other(self):
        wire = self.greeted()
        wire.say(HAVE_ALL)
        wire.wait_closed()

    def test_extension_numbers_are_the_receivers_and_may_change(self):
        wire = self.greeted()
        wire.say(HAVE_NONE)
        wire.say_extensions({"ut_metadata": 77})
        wire.expect(EXTENDED, where=lambda payload: payload[0] == 0)
        theirs = wire.extensions["ut_metadata"]
        self.assertNotEqual(theirs, 0)
        for number in (77, 200):  # The second time with another number in another handshake.
            wire.say_extensions({"ut_metadata": number})
            wire.extended(theirs, {"msg_type": 0, "piece": 0})
            answer = wire.expect(EXTENDED, where=lambda payload: payload[0] != 0)
            self.assertEqual(answer[0], number)
            head, data = decode(answer[1:])
            self.assertEqual(head[b"msg_type"], 1)
            self.assertEqual(head[b"total_size"], len(self.torrent.info))
            self.assertEqual(data, self.torrent.info[:BLOCK])
        wire.say_extensions({"ut_metadata": 0})  # Switched off: there is no number to answer by.
        wire.extended(theirs, {"msg_type": 0, "piece": 0})
        self.assertEqual([payload[0] for number, payload in wire.listen(QUIET) if number == EXTENDED], [])
        self.assert_gives()

    def test_parts_of_metadata_that_are_not_there_are_rejected(self):
        wire = self.greeted()
        wire.say_extensions({"ut_metadata": 7})
        wire.expect(EXTENDED)
        for part in (1_000, 0x7FFF_FFFF):
            wire.extended(wire.extensions["ut_metadata"], {"msg_type": 0, "piece": part})
            head, _ = decode(wire.expect(EXTENDED)[1:])
            self.assertEqual((head[b"msg_type"], head[b"piece"]), (2, part))
        self.assert_gives()

    def test_a_flood_of_metadata_requests_is_bounded(self):
        """A peer may ask for each part a few times; after that it is told no, or nothing."""
        wire = self.greeted()
        wire.say_extensions({"ut_metadata": 7})
        wire.expect(EXTENDED)
        wire.raw(raw_peer.frame(EXTENDED, bytes([wire.extensions["ut_metadata"]])
                                + encode({"msg_type": 0, "piece": 0})) * 5_000)
        given = [payload for number, payload in wire.listen(QUIET) if number == EXTENDED and len(payload) > 400]
        self.assertLess(len(given), 100)
        self.assert_gives()

    def test_extension_messages_that_are_none_do_no_harm(self):
        for payload in (b"\x00", b"\x00d", b"\x00i1e", b"\x00" + b"l" * 5_000, b"\x00d1:mi5ee", b"\x01",
                        b"\x01d8:msg_typei0ee", b"\x01d8:msg_typei0e5:piecei-1ee", b"\x02d5:added5:abcdee",
                        b"\x00d1:md11:ut_metadatai-4eee", b"\x00d13:metadata_sizei99999999999999999999ee"):
            with self.subTest(payload=payload[:40]), Wire.dial(self.seeder.port) as wire:
                wire.greet(self.torrent.info_hash)
                wire.say(EXTENDED, payload)
                wire.listen(0.5)
        self.assert_gives()

    def test_a_flood_of_requests_is_bounded(self):
        """Whoever asks for more than is kept for him is told no, or nothing; others get theirs meanwhile."""
        wire = ready_to_take(self.dial(), self.torrent)
        _, before = self.seeder.memory()
        wire.socket.settimeout(60)
        flood = raw_peer.frame(REQUEST, struct.pack("!III", 0, 0, BLOCK)) * 20_000
        try:
            wire.socket.sendall(flood)
        except OSError:
            pass  # Closed, or not read any further: both are bounds.
        self.assert_gives()
        _, after = self.seeder.memory()
        self.assertLess(after - before, 32 * MIB)

    def test_answers_that_nobody_reads_are_bounded(self):
        """Each request while choked, and each for metadata that is not there, is rejected: to whom it may concern."""
        for name in ("requests", "metadata"):
            with self.subTest(name):
                wire = self.greeted()
                wire.say(HAVE_NONE)
                wire.say_extensions({"ut_metadata": 7})
                wire.expect(EXTENDED)
                _, before = self.seeder.memory()
                message = raw_peer.frame(REQUEST, struct.pack("!III", 11, 0, BLOCK)) if name == "requests" else \
                    raw_peer.frame(EXTENDED, bytes([wire.extensions["ut_metadata"]])
                                   + encode({"msg_type": 0, "piece": 999}))
                wire.socket.settimeout(QUIET)
                try:
                    for _ in range(64):
                        wire.socket.sendall(message * (MIB // len(message)))
                except OSError:
                    pass  # Closed, or not read any further: both are bounds.
                _, after = self.seeder.memory()
                self.assertLess(after - before, 24 * MIB)
        self.assert_gives()

    def test_a_cancelled_request_is_not_answered_twice(self):
        """A CANCEL may cross the block on the wire: at most one answer, with the fast extension exactly one."""
        wire = ready_to_take(self.dial(), self.torrent)
        wanted = [block for block in blocks(self.torrent)][:100]
        for block in wanted:
            wire.request(*block)
        for block in wanted:
            wire.say(CANCEL, struct.pack("!III", *block))
        heard = wire.listen(QUIET)
        answers = [payload[:8] for number, payload in heard if number in (PIECE, REJECT)]
        self.assertEqual(sorted(answers), sorted(struct.pack("!II", *block[:2]) for block in wanted))

    def test_of_two_connections_of_the_same_peer_one_stays(self):
        first = self.greeted(peer_id=b"-RP0001-the-same-one")
        first.say(INTERESTED)
        first.expect(UNCHOKE)
        second = self.dial(peer_id=first.peer_id)
        second.raw(handshake(self.torrent.info_hash, second.peer_id))

        def one_is_closed():
            first.listen(0.1)
            second.listen(0.1)
            return first.is_closed or second.is_closed
        try:
            second.hear_handshake()
        except Closed:
            pass
        wait_until(one_is_closed, 10, "one of two connections is closed")
        stays = second if first.is_closed else first
        if stays is second:
            second.say(INTERESTED)
            second.expect(UNCHOKE)
        self.assertEqual(stays.fetch(0, 0, BLOCK), self.torrent.piece(0)[:BLOCK])

    def test_its_own_peer_id_is_refused(self):
        """Who hears itself hangs up."""
        wire = self.dial()
        wire.greet(self.torrent.info_hash)
        again = self.dial(peer_id=wire.theirs[2])
        again.raw(handshake(self.torrent.info_hash, again.peer_id))
        with self.assertRaises(Closed):
            again.hear_handshake()
            again.wait_closed(QUIET)
            raise Closed
        again.wait_closed()
        self.assert_gives()

    def test_who_reads_nothing_holds_no_memory(self):
        """Whoever asks for much and takes none of it gets what the kernel's buffers hold."""
        _, before = self.seeder.memory()
        wires = [ready_to_take(self.dial(source=f"127.0.1.{number}"), self.torrent) for number in range(1, 5)]
        for wire in wires:
            for block in blocks(self.torrent):
                wire.request(*block)
        time.sleep(2)  # Nothing is to happen: there is nothing to wait for.
        _, after = self.seeder.memory()
        self.assertLess(after - before, 24 * MIB)
        self.assert_gives()


class OurDownloader(PeerTest):
    """Our peer wants it all; the other side has it, and misbehaves."""

    def setUp(self):
        self.torrent = Torrent(self.id(), 40 * 65_536 + 5_000, is_private=False)
        self.count = len(self.torrent.hashes)

    def seeder(self, kind=Seeder, **options):
        return self.enterContext(kind(self.torrent, **options))

    def test_each_block_is_asked_for_once_and_as_everybody_does(self):
        """Of 16 KiB, within a piece; the last is shorter. No HAVE goes to who has the piece."""
        seeder = self.seeder()
        self.assert_gets(self.get(self.torrent, [seeder]), self.torrent)
        self.assertEqual(sorted(seeder.requests), blocks(self.torrent))
        wire, = seeder.wires
        self.assertNotIn(HAVE, [number for number, _ in wire.seen])

    def test_interest_comes_first_and_nothing_is_asked_while_choked(self):
        class Choking(Seeder):
            def introduce(self, wire):
                wire.say(HAVE_ALL)
                wire.expect(INTERESTED)
                self.early = [number for number, _ in wire.listen(2) if number == REQUEST]
                wire.say(UNCHOKE)
        seeder = self.seeder(Choking)
        self.assert_gets(self.get(self.torrent, [seeder]), self.torrent)
        self.assertEqual(seeder.early, [])

    def test_without_any_extension(self):
        class Old(Seeder):
            reserved = 0
        seeder = self.seeder(Old)
        self.assert_gets(self.get(self.torrent, [seeder]), self.torrent)
        wire, = seeder.wires
        numbers = {number for number, _ in wire.seen}
        self.assertLessEqual(numbers, set(range(9)), "none that is newer than BEP 3")

    def test_what_comes_byte_by_byte_or_all_at_once(self):
        class Dripping(Seeder):
            def requested(self, wire, piece, begin, length):
                data = raw_peer.frame(PIECE, struct.pack("!II", piece, begin) + self.data(piece, begin, length))
                for at in range(20):  # The head and what follows it, in single bytes.
                    wire.raw(data[at:at + 1])
                    if piece == 0:
                        time.sleep(0.001)
                wire.raw(data[20:])
        self.assert_gets(self.get(self.torrent, [self.seeder(Dripping)]), self.torrent)

    def test_pieces_told_one_by_one(self):
        """A lazy bitfield: none at first, then HAVEs, some of them twice."""
        class Lazy(Seeder):
            def introduce(self, wire):
                wire.say(HAVE_NONE)
                wire.say(UNCHOKE)
                for piece in [*range(self.count), 0, 1, 2]:
                    wire.have(piece)
        self.assert_gets(self.get(self.torrent, [self.seeder(Lazy)]), self.torrent)

    def test_the_extension_handshake_before_the_bitfield(self):
        class Early(Seeder):
            def introduce(self, wire):
                wire.say_extensions({}, v="Early 1.0")
                wire.say(BITFIELD, bitfield(range(self.count), self.count))
                wire.say(UNCHOKE)
        self.assert_gets(self.get(self.torrent, [self.seeder(Early)]), self.torrent)

    def test_no_more_requests_than_the_other_side_keeps(self):
        """`reqq` (BEP 10) is a promise of what is kept: more would be lost."""
        class Small(Seeder):
            most, waiting = 0, []

            def introduce(self, wire):
                wire.say_extensions({}, reqq=5)
                super().introduce(wire)
                self.waiting = []

            def requested(self, wire, piece, begin, length):
                self.waiting.append((piece, begin, length))
                self.most = max(self.most, len(self.waiting))
                # Whatever else is asked is asked at once.
                if not select_readable(wire, 0.05):
                    for block in self.waiting:
                        wire.give(*block[:2], self.data(*block))
                    self.waiting = []
        seeder = self.seeder(Small)
        self.assert_gets(self.get(self.torrent, [seeder]), self.torrent)
        self.assertLessEqual(seeder.most, 5)

    def test_a_choke_voids_requests_without_the_fast_extension(self):
        class Moody(Seeder):
            reserved = EXTENSIONS
            chokes = 0

            def requested(self, wire, piece, begin, length):
                if self.chokes == 0 and len(self.requests) == 10:
                    self.chokes = 1
                    wire.say(CHOKE)
                    wire.listen(1)  # What was asked before the choke came, or wrongly after it.
                    wire.say(UNCHOKE)
                elif self.chokes == 1 or len(self.requests) < 10:
                    super().requested(wire, piece, begin, length)
        seeder = self.seeder(Moody)
        self.assert_gets(self.get(self.torrent, [seeder]), self.torrent)
        self.assertEqual(seeder.chokes, 1)

    def test_a_choke_with_the_fast_extension_rejects_each_request(self):
        class Moody(Seeder):
            chokes = 0

            def requested(self, wire, piece, begin, length):
                if self.chokes == 0 and len(self.requests) == 10:
                    self.chokes = 1
                    wire.say(CHOKE)
                    pending = [(piece, begin, length)]
                    pending += [struct.unpack("!III", payload) for number, payload in wire.listen(1)
                                if number == REQUEST]
                    for block in pending:
                        wire.say(REJECT, struct.pack("!III", *block))
                    self.requests_while_choked = [number for number, _ in wire.listen(1) if number == REQUEST]
                    wire.say(UNCHOKE)
                else:
                    super().requested(wire, piece, begin, length)
        seeder = self.seeder(Moody)
        self.assert_gets(self.get(self.torrent, [seeder]), self.torrent)
        self.assertEqual(seeder.chokes, 1)
        self.assertEqual(seeder.requests_while_choked, [])

    def test_what_is_allowed_fast_is_asked_for_while_choked(self):
        class Kind(Seeder):
            def introduce(self, wire):
                wire.say(HAVE_ALL)
                for piece in (3, 7):
                    wire.say(ALLOWED_FAST, struct.pack("!I", piece))
                self.is_open = False

            def requested(self, wire, piece, begin, length):
                super().requested(wire, piece, begin, length)
                if not self.is_open and len(self.requests) == 8:
                    self.asked_while_choked = {block[0] for block in self.requests}
                    self.is_open = True
                    wire.say(UNCHOKE)
        seeder = self.seeder(Kind)
        self.assert_gets(self.get(self.torrent, [seeder]), self.torrent)
        self.assertEqual(seeder.asked_while_choked, {3, 7})

    def test_a_corrupt_peer_is_dropped_and_the_piece_comes_from_elsewhere(self):
        class Corrupt(Seeder):
            def data(self, piece, begin, length):
                return bytes(byte ^ 0xFF for byte in super().data(piece, begin, length))
        corrupt = self.seeder(Corrupt, host="127.0.0.2")
        program = self.get(self.torrent, [corrupt])
        wait_until(lambda: corrupt.wires and corrupt.wires[0].is_closed, 60, "the corrupt peer is dropped")
        dialled = len(corrupt.wires)
        self.assert_no_wrong_byte()
        with Wire.dial(program.port, source="127.0.0.3") as wire:  # An honest one comes along.
            wire.greet(self.torrent.info_hash)
            wire.say(HAVE_ALL)
            wire.say(UNCHOKE)
            serve(wire, self.torrent)
        self.assert_gets(program, self.torrent)
        self.assertEqual(len(corrupt.wires), dialled, "it is left alone")

    def assert_no_wrong_byte(self):
        """What is on the disk is right or not written: zero."""
        path = self.folder("downloader") / self.torrent.name
        data = path.read_bytes() if path.exists() else b""
        for index in range(len(data) // self.torrent.piece_length):
            piece = data[index * self.torrent.piece_length:(index + 1) * self.torrent.piece_length]
            is_unwritten = not piece.strip(b"\0")
            self.assertTrue(is_unwritten or piece == self.torrent.piece(index), f"piece {index} is wrong")

    def test_who_spoils_one_block_of_a_shared_piece_is_found(self):
        """Two have a part in a wrong piece; the honest one is not punished, and gives all in the end."""
        class Spoiler(Seeder):
            def data(self, piece, begin, length):
                data = super().data(piece, begin, length)
                return bytes([data[0] ^ 1]) + data[1:] if begin == 0 else data
        spoiler = self.seeder(Spoiler, host="127.0.0.2")
        honest = self.seeder(Slow, host="127.0.0.3")
        self.assert_gets(self.get(self.torrent, [spoiler, honest]), self.torrent, 120)
        self.assertFalse(any(wire.is_closed for wire in honest.wires[:1]) and len(honest.wires) > FEW)

    def test_a_peer_that_stalls_in_the_middle_of_a_block_does_not_hold_the_rest(self):
        class Stalling(Seeder):
            def requested(self, wire, piece, begin, length):
                if len(self.requests) == 1:
                    wire.raw(struct.pack("!IBII", 9 + length, PIECE, piece, begin) + self.data(piece, begin, 1_000))
        stalling = self.seeder(Stalling, host="127.0.0.2")
        program = self.get(self.torrent, [stalling])
        wait_until(lambda: stalling.requests, 30, "the stalling peer is asked")
        with Wire.dial(program.port, source="127.0.0.3") as wire:
            wire.greet(self.torrent.info_hash)
            wire.say(HAVE_ALL)
            wire.say(UNCHOKE)
            serve(wire, self.torrent)
        self.assert_gets(program, self.torrent, 120)

    def test_a_peer_that_never_answers_is_passed_over(self):
        class Mute(Seeder):
            def requested(self, wire, piece, begin, length):
                pass
        mute = self.seeder(Mute, host="127.0.0.2")
        program = self.get(self.torrent, [mute])
        wait_until(lambda: mute.requests, 30, "the mute peer is asked")
        with Wire.dial(program.port, source="127.0.0.3") as wire:
            wire.greet(self.torrent.info_hash)
            wire.say(HAVE_ALL)
            wire.say(UNCHOKE)
            serve(wire, self.torrent)
        self.assert_gets(program, self.torrent, 120)

    def test_at_the_end_the_others_are_asked_too_and_told_when_it_has_come(self):
        """Endgame: a block that one holds back is asked of the other, and cancelled at the first."""
        class Withholding(Seeder):
            def requested(self, wire, piece, begin, length):
                if len(self.requests) > 3:
                    return  # It holds back whatever else it is asked for.
                super().requested(wire, piece, begin, length)
        first = self.seeder(Withholding, host="127.0.0.2")
        program = self.get(self.torrent, [first])
        wait_until(lambda: len(first.requests) > 4, 30, "blocks are asked for that will not come")
        second = self.seeder(host="127.0.0.3")
        with Wire.dial(program.port, source="127.0.0.3") as wire:
            wire.greet(self.torrent.info_hash)
            wire.say(HAVE_ALL)
            wire.say(UNCHOKE)
            serve(wire, self.torrent)
        self.assert_gets(program, self.torrent, 60)
        held = first.requests[3:]
        wait_until(lambda: first.wires[0].is_closed, 10, "the downloader has gone")
        self.assertTrue(set(first.cancels) & set(held), "a block that came from elsewhere is cancelled")
        self.assertEqual(second.wires, [])

    def test_blocks_that_nobody_asked_for_are_not_kept(self):
        class Pushing(Seeder):
            def introduce(self, wire):
                super().introduce(wire)
                for piece in range(self.count):
                    wire.give(piece, 0, bytes(BLOCK if piece < self.count - 1 else 5_000))

            def requested(self, wire, piece, begin, length):
                super().requested(wire, piece, begin, length)
                wire.give((piece + 1) % (self.count - 1), 16, bytes(BLOCK))
        pushing = self.seeder(Pushing)
        program = self.get(self.torrent, [pushing])
        wait_until(lambda: pushing.wires and pushing.wires[0].is_closed, 60, "it takes all, or drops the peer")
        if torrent_is_missing(program, self.torrent):
            self.take_from_honest(program)
        self.assert_gets(program, self.torrent)

    def take_from_honest(self, program):
        with Wire.dial(program.port, source="127.0.0.33") as wire:
            wire.greet(self.torrent.info_hash)
            wire.say(HAVE_ALL)
            wire.say(UNCHOKE)
            serve(wire, self.torrent)

    def test_blocks_that_come_twice(self):
        """The second copy is wrong: whoever takes it over the first spoils the piece."""
        class Twice(Seeder):
            def requested(self, wire, piece, begin, length):
                super().requested(wire, piece, begin, length)
                wire.give(piece, begin, bytes(length))
        self.assert_gets(self.get(self.torrent, [self.seeder(Twice)]), self.torrent)

    def test_blocks_that_name_no_place_do_no_harm(self):
        whole = self.torrent.piece_length
        for piece, begin, data in ((0, 0, b""), (self.count, 0, bytes(BLOCK)), (0xFFFF_FFFF, 0xFFFF_FFFF, bytes(9)),
                                   (0, whole, bytes(BLOCK)), (0, whole - 1, bytes(BLOCK)), (0, 0, bytes(131_072)),
                                   (0, 1, bytes(BLOCK)), (0, 0, bytes(BLOCK - 1))):
            with self.subTest(piece=piece, begin=begin, length=len(data)):
                class Wrong(Seeder):
                    def requested(self, wire, *block):
                        if len(self.requests) == 1:
                            wire.give(piece, begin, data)
                        super().requested(wire, *block)
                with Wrong(self.torrent, host="127.0.0.2") as wrong, Seeder(self.torrent, host="127.0.0.3") as right:
                    folder = self.folder(f"into-{piece}-{begin}-{len(data)}")
                    self.assert_gets(self.get(self.torrent, [wrong, right], folder=folder), self.torrent)

    def test_a_block_of_a_huge_length_is_closed_and_memory_stays_bounded(self):
        class Huge(Seeder):
            def requested(self, wire, piece, begin, length):
                wire.raw(struct.pack("!IBII", 0x7FFF_FFFF, PIECE, piece, begin))
                for _ in range(256):
                    wire.raw(bytes(MIB))
                    if wire.is_closed:
                        raise Closed
        huge = self.seeder(Huge)
        program = self.get(self.torrent, [huge])
        wait_until(lambda: huge.wires and huge.wires[0].is_closed, 60, "the peer is dropped")
        self.assertLess(program.memory()[1], 150 * MIB)
        self.take_from_honest(program)
        self.assert_gets(program, self.torrent)

    def test_a_piece_that_the_other_side_has_lost_is_not_asked_for(self):
        """BEP 54: `lt_donthave`, by the number that we have given it."""
        class Losing(Seeder):
            has_lost = False

            def introduce(self, wire):
                wire.expect(EXTENDED, where=lambda payload: payload[0] == 0)
                wire.say(HAVE_ALL)
                wire.extended_raw = bytes([wire.extensions["lt_donthave"]])
                for piece in range(0, self.count, 2):
                    wire.say(EXTENDED, wire.extended_raw + struct.pack("!I", piece))
                wire.say(UNCHOKE)
        losing = self.seeder(Losing, host="127.0.0.2")
        whole = self.seeder(Slow, host="127.0.0.3")
        self.assert_gets(self.get(self.torrent, [losing, whole]), self.torrent, 120)
        self.assertTrue(losing.requests)
        self.assertEqual({piece for piece, _, _ in losing.requests if piece % 2 == 0}, set())

    def test_a_rejected_block_is_asked_of_another(self):
        class Refusing(Seeder):
            def requested(self, wire, piece, begin, length):
                if piece % 2:
                    wire.say(REJECT, struct.pack("!III", piece, begin, length))
                else:
                    super().requested(wire, piece, begin, length)
        refusing = self.seeder(Refusing, host="127.0.0.2")
        whole = self.seeder(host="127.0.0.3")
        self.assert_gets(self.get(self.torrent, [refusing, whole]), self.torrent, 120)
        self.assertLess(len(refusing.requests), 20 * len(blocks(self.torrent)), "no storm of requests and rejects")

    def test_who_rejects_everything_is_not_asked_without_end(self):
        class Refusing(Seeder):
            def requested(self, wire, piece, begin, length):
                wire.say(REJECT, struct.pack("!III", piece, begin, length))
        refusing = self.seeder(Refusing, host="127.0.0.2")
        program = self.get(self.torrent, [refusing])
        wait_until(lambda: refusing.requests, 30, "it is asked")
        time.sleep(QUIET)  # Nothing is to happen: there is nothing to wait for.
        self.assertLess(len(refusing.requests), 10 * len(blocks(self.torrent)))
        self.take_from_honest(program)
        self.assert_gets(program, self.torrent)

    def test_it_does_not_talk_to_itself(self):
        """Its own address among the peers: it hangs up, goes on, and does not try again and again."""
        seeder = self.seeder()
        folder = self.folder("downloader")
        port = free_port()
        program = self.program("get", self.torrent_file(self.torrent), "--path", folder, "--listen",
                               f"127.0.0.1:{port}", "--no-tracker", "--peer", f"127.0.0.1:{port}",
                               "--peer", "{}:{}".format(*seeder.address))
        program.folder = folder
        self.assert_gets(program, self.torrent)

    def test_metadata_of_an_absurd_size_is_not_waited_for(self):
        for size in (0, -1, 1 << 31, 1 << 62, 10**30):
            with self.subTest(size=size):
                class Lying(Metadata):
                    def size(self):
                        return size

                    def metadata(self, part):
                        return bytes(BLOCK)
                with Lying(self.torrent, host="127.0.0.2") as lying, Metadata(self.torrent, host="127.0.0.3") as right:
                    program = self.get(self.torrent, [lying, right], folder=self.folder(f"size-{size % 97}"),
                                       source=self.torrent.magnet())
                    self.assert_gets(program, self.torrent)

    def test_metadata_that_is_another_torrents_is_not_believed(self):
        other = Torrent("another", 100_000)

        class Lying(Metadata):
            def size(self):
                return len(other.info)

            def metadata(self, part):
                return other.info[part * BLOCK:(part + 1) * BLOCK]
        lying = self.seeder(Lying, host="127.0.0.2")
        program = self.get(self.torrent, [lying], source=self.torrent.magnet())
        wait_until(lambda: any(number == EXTENDED and payload[0] == Lying.number
                               for wire in lying.wires for number, payload in wire.seen), 30, "metadata is asked for")
        self.assert_runs(program)
        self.assertFalse((self.folder("downloader") / other.name).exists())
        with Metadata(self.torrent, host="127.0.0.3") as honest:
            again = self.get(self.torrent, [lying, honest], folder=self.folder("again"), source=self.torrent.magnet())
            self.assert_gets(again, self.torrent, 120)

    def test_a_flood_of_metadata_is_not_kept(self):
        class Flooding(Metadata):
            def introduce(self, wire):
                wire.say_extensions({"ut_metadata": self.number}, metadata_size=self.size())
                wire.expect(EXTENDED, where=lambda payload: payload[0] == 0)
                for part in range(2_000):
                    wire.extended(wire.extensions["ut_metadata"],
                                  {"msg_type": 1, "piece": part, "total_size": 1 << 40}, bytes(BLOCK))
                super().introduce(wire)
        flooding = self.seeder(Flooding, host="127.0.0.2")
        honest = self.seeder(Metadata, host="127.0.0.3")
        program = self.get(self.torrent, [flooding, honest], "--seed", source=self.torrent.magnet())
        wait_until(lambda: self.torrent.sha256_in(program.folder) == self.torrent.sha256, 60, "it has all")
        self.assertLess(program.memory()[1], 150 * MIB)

    def test_metadata_of_many_parts(self):
        """More than 16 KiB, with a last part that is shorter."""
        self.torrent = Torrent(self.id(), 3_000 * 1_024, piece_length=1_024, is_private=False)
        self.assertGreater(len(self.torrent.info), 3 * BLOCK)
        seeder = self.seeder(Metadata)
        self.assert_gets(self.get(self.torrent, [seeder], source=self.torrent.magnet()), self.torrent)

    def test_a_flood_of_exchanged_peers_is_bounded(self):
        """Ten thousand addresses (BEP 11 allows 50): it goes on, and does not dial them all."""
        class Flooding(Seeder):
            def introduce(self, wire):
                wire.say_extensions({"ut_pex": 3})
                wire.expect(EXTENDED, where=lambda payload: payload[0] == 0)
                added = b"".join(struct.pack("!BBBBH", 127, 9, number >> 8, number & 255, 9)
                                 for number in range(10_000))
                wire.extended(wire.extensions["ut_pex"], {"added": added, "added.f": bytes(10_000), "dropped": b""})
                super().introduce(wire)
        self.assert_gets(self.get(self.torrent, [self.seeder(Flooding)]), self.torrent)


class Slow(Seeder):
    """Gives some hundred KiB a second, so that others have a part in it."""

    def requested(self, wire, piece, begin, length):
        time.sleep(0.02)
        super().requested(wire, piece, begin, length)


def torrent_is_missing(program, torrent):
    return torrent.sha256_in(program.folder) != torrent.sha256


def select_readable(wire, seconds):
    return bool(wire._buffer) or bool(select.select([wire.socket], [], [], seconds)[0])


def serve(wire, torrent, within=120):
    """Gives what is asked for until the other side has all and hangs up."""
    deadline = time.monotonic() + within
    try:
        while True:
            message = wire.hear(deadline - time.monotonic())
            if message and message[0] == REQUEST:
                piece, begin, length = struct.unpack("!III", message[1])
                wire.give(piece, begin, torrent.piece(piece)[begin:begin + length])
    except Closed:
        return


if __name__ == "__main__":
    unittest.main()
