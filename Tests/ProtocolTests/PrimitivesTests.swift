// What everything else stands on: hashes, random numbers, bytes, time.

import Primitives
import Testing

@Suite("Primitives")
struct PrimitivesTests {
    // MARK: SipHash

    /// SipHash-2-4 of 00, 00 01, 00 01 02 … under the key 00 01 … 0F: the vectors of its authors' reference code.
    static let sipHashes: [UInt64] = [
        0x726f_db47_dd0e_0e31, 0x74f8_39c5_93dc_67fd, 0x0d6c_8009_d9a9_4f5a, 0x8567_6696_d7fb_7e2d,
        0xcf27_94e0_2771_87b7, 0x1876_5564_cd99_a68d, 0xcbc9_466e_58fe_e3ce, 0xab02_00f5_8b01_d137,
        0x93f5_f579_9a93_2462, 0x9e00_82df_0ba9_e4b0, 0x7a5d_bbc5_94dd_b9f3, 0xf4b3_2f46_226b_ada7,
        0x751e_8fbc_860e_e5fb, 0x14ea_5627_c084_3d90, 0xf723_ca90_8e7a_f2ee, 0xa129_ca61_49be_45e5,
        0x3f2a_cc7f_57c2_9bdb, 0x699a_e9f5_2cbe_4794, 0x4bc1_b3f0_968d_d39c, 0xbb6d_c91d_a779_61bd,
        0xbed6_5cf2_1aa2_ee98, 0xd0f2_cbb0_2e3b_67c7, 0x9353_6795_e3a3_3e88, 0xa80c_038c_cd5c_cec8,
        0xb8ad_50c6_f649_af94, 0xbce1_92de_8a85_b8ea, 0x17d8_35b8_5bbb_15f3, 0x2f2e_6163_076b_cfad,
        0xde4d_aaac_a71d_c9a5, 0xa6a2_5066_8795_6571, 0xad87_a353_5c49_ef28, 0x32d8_92fa_d841_c342,
        0x7127_512f_72f2_7cce, 0xa7f3_2346_f959_78e3, 0x12e0_b01a_bb05_1238, 0x15e0_34d4_0fa1_97ae,
        0x314d_ffbe_0815_a3b4, 0x0279_90f0_2962_3981, 0xcadc_d4e5_9ef4_0c4d, 0x9abf_d876_6a33_735c,
        0x0e3e_a96b_5304_a7d0, 0xad0c_42d6_fc58_5992, 0x1873_06c8_9bc2_15a9, 0xd4a6_0abc_f379_2b95,
        0xf935_451d_e4f2_1df2, 0xa953_8f04_1975_5787, 0xdb9a_cddf_f56c_a510, 0xd06c_98cd_5c09_75eb,
        0xe612_a3cb_9ecb_a951, 0xc766_e62c_fcad_af96, 0xee64_435a_9752_fe72, 0xa192_d576_b245_165a,
        0x0a87_87bf_8ecb_74b2, 0x81b3_e73d_20b4_9b6f, 0x7fa8_220b_a3b2_ecea, 0x2457_31c1_3ca4_2499,
        0xb78d_bfaf_3a8d_83bd, 0xea1a_d565_322a_1a0b, 0x60e6_1c23_a379_5013, 0x6606_d7e4_4628_2b93,
        0x6ca4_ecb1_5c5f_91e1, 0x9f62_6da1_5c96_25f3, 0xe51b_3860_8ef2_5f57, 0x958a_324c_eb06_4572,
    ]

    @Test func `SipHash agrees with the reference, for every length`() {
        let hash = SipHash(key0: 0x0706_0504_0302_0100, key1: 0x0F0E_0D0C_0B0A_0908)
        for (count, expected) in Self.sipHashes.enumerated() {
            #expect(hash.mac((0..<count).map { UInt8($0) }) == expected, "\(count) bytes")
        }
        // Three words are 24 bytes, little end first.
        #expect(
            hash.mac(0x0706_0504_0302_0100, 0x0F0E_0D0C_0B0A_0908, 0x1716_1514_1312_1110) == Self.sipHashes[24])
    }

    // MARK: Random numbers

    /// Worked out by another program: old seeds stay valid only while these hold.
    static let streams: [(seed: UInt64, stream: UInt64, numbers: [UInt64])] = [
        (0, 0, [0x9fb8_3845_efaf_8163, 0xc720_6727_683b_6ad3, 0xa9bc_fc51_6e2b_64d2, 0xcaee_6ff1_6a25_daaf]),
        (1, 0, [0x959d_71aa_9527_1620, 0xaf45_ae3e_6e52_ce2a, 0xd237_c73d_2034_0f7e, 0xca61_0da2_2a7f_c444]),
        (1, 1, [0xe08c_c6ed_08e3_5c25, 0x8d2f_bc8d_4327_fe64, 0xcda2_a568_d063_7f05, 0x8349_d1f7_9f83_6cc1]),
        (.max, 0, [0xb6ff_2b91_c029_6083, 0xa005_753c_eee4_b49d, 0x4cb7_2c55_b157_8a94, 0xf23b_93a0_4409_2136]),
    ]

    @Test(arguments: streams)
    func `the numbers of a seed never change`(_ golden: (seed: UInt64, stream: UInt64, numbers: [UInt64])) {
        var random = RandomStream(seed: golden.seed, stream: golden.stream)
        #expect(golden.numbers.map { _ in random.next() } == golden.numbers)
    }

    @Test func `bounded numbers and shuffles of a seed never change`() {
        var random = RandomStream(seed: 42)
        #expect((0..<12).map { _ in random.below(100) } == [9, 92, 88, 53, 34, 74, 98, 55, 80, 59, 93, 53])
        random = RandomStream(seed: 7)
        var elements = Array(0..<10)
        random.shuffle(&elements)
        #expect(elements == [0, 1, 5, 6, 4, 2, 7, 8, 9, 3])
        // SplitMix64, from the seed 1234567: a published value.
        #expect(mixed(1_234_567 &+ 0x9E37_79B9_7F4A_7C15) == 6_457_827_717_110_365_317)
    }

    @Test func `bounded numbers are even, and stay within their bounds`() {
        var random = RandomStream(seed: 1)
        for bound in [1, 2, 3, 7, 10, 100] {
            var counts = Array(repeating: 0, count: bound)
            for _ in 0..<bound * 2_000 { counts[random.below(bound)] += 1 }
            #expect(counts.allSatisfy { (1_700...2_300).contains($0) }, "\(bound): \(counts)")
        }
        for _ in 0..<1_000 {
            let span = random.between(.seconds(-1), .seconds(1))
            #expect((Duration.seconds(-1)...Duration.seconds(1)).contains(span))
            #expect(random.between(.seconds(3), .seconds(3)) == .seconds(3))
            #expect(random.between(.seconds(3), .seconds(2)) == .seconds(3))
        }
        #expect((1_600...2_400).contains((0..<20_000).count { _ in random.oneIn(10) }))
    }

    @Test func `every order of three comes out of a shuffle, equally often`() {
        var random = RandomStream(seed: 3)
        var counts: [[Int]: Int] = [:]
        for _ in 0..<12_000 {
            var elements = [0, 1, 2]
            random.shuffle(&elements)
            counts[elements, default: 0] += 1
        }
        #expect(counts.count == 6)
        #expect(counts.values.allSatisfy { (1_800...2_200).contains($0) })
    }

    // MARK: Bytes

    @Test func `numbers are written and read with the most significant byte first`() throws {
        var bytes: [UInt8] = []
        bytes.append(bigEndian: UInt8(1))
        bytes.append(bigEndian: UInt16(0x0203))
        bytes.append(bigEndian: UInt32(0x0405_0607))
        bytes.append(bigEndian: UInt64(0x0809_0A0B_0C0D_0E0F))
        bytes.append(bigEndian: Int32(-2))
        #expect(bytes == Array(1...15) + [0xFF, 0xFF, 0xFF, 0xFE])
        let span = bytes.span.bytes
        #expect(span.u8(at: 0) == 1)
        #expect(span.u16(at: 1) == 0x0203)
        #expect(span.u32(at: 3) == 0x0405_0607)
        #expect(span.u64(at: 7) == 0x0809_0A0B_0C0D_0E0F)
        var reader = ByteReader(bytes)
        #expect(try reader.u8() == 1)
        #expect(try reader.u16() == 0x0203)
        #expect(try reader.u32() == 0x0405_0607)
        #expect(try reader.u64() == 0x0809_0A0B_0C0D_0E0F)
        #expect(reader.remaining == 4)
    }

    @Test func `a read past the end throws, and consumes nothing`() {
        let bytes: [UInt8] = [0, 4, 1, 2, 3]
        func check<Value>(_ offset: Int, _ read: (inout ByteReader) throws(OutOfBytes) -> Value) {
            var reader = ByteReader(bytes, from: offset)
            #expect(throws: OutOfBytes()) { try read(&reader) }
            #expect(reader.offset == offset)
        }
        check(5) { reader throws(OutOfBytes) in try reader.u8() }
        check(4) { reader throws(OutOfBytes) in try reader.u16() }
        check(2) { reader throws(OutOfBytes) in try reader.u32() }
        check(0) { reader throws(OutOfBytes) in try reader.u64() }
        check(0) { reader throws(OutOfBytes) in try reader.bytes20() }
        check(0) { reader throws(OutOfBytes) in try reader.counted() }
        check(4) { reader throws(OutOfBytes) in try reader.counted() }
        check(0) { reader throws(OutOfBytes) in try reader.take(6) }
        check(0) { reader throws(OutOfBytes) in try reader.take(-1) }
        check(1) { reader throws(OutOfBytes) in try reader.take(.max) }
    }

    @Test func `counted bytes come back, and what is too long to count is cut`() throws {
        for count in [0, 1, 255, 256, 65_535, 65_536, 70_000] {
            var bytes: [UInt8] = []
            bytes.append(counted: Array(repeating: 7, count: count))
            var reader = ByteReader(bytes)
            #expect(try reader.counted().count == min(count, 65_535))
            #expect(reader.remaining == 0)
        }
    }

    @Test func `twenty bytes come back, as bytes and as hexadecimal digits`() throws {
        let raw = (0..<20).map { UInt8($0 * 13) }
        let value = try #require(Bytes20(raw))
        #expect(value.bytes == raw)
        #expect(value.description == "000d1a2734414e5b6875828f9ca9b6c3d0ddeaf7")
        #expect(Bytes20(([9, 9] + raw).span.bytes, at: 2) == value)
        #expect(bytes(hexadecimal: "000d1a2734414e5b6875828f9ca9b6c3d0ddeaf7") == raw)
        #expect(bytes(hexadecimal: "000D1A2734414E5B6875828F9CA9B6C3D0DDEAF7") == raw)
        for wrong in ["0", "0g", "é", "0x", " 0", "+1"] { #expect(bytes(hexadecimal: wrong) == nil, "\(wrong)") }
        #expect(bytes(hexadecimal: "") == [])
        for count in [0, 19, 21] { #expect(Bytes20(Array(repeating: 1, count: count)) == nil) }
        for place in 0..<20 {
            var other = value
            other[place] ^= 1
            #expect(other != value)
            #expect(other.hash(key: 5) != value.hash(key: 5))
        }
        #expect(value.hash(key: 5) != value.hash(key: 6))
        #expect(MemoryLayout<Bytes20>.stride == 20)
    }

    @Test func `a checksum sees every bit, the order and the length, but not the hole`() {
        let bytes = (0..<61).map { UInt8($0) }
        let sum = checksum(bytes.span.bytes)
        for bit in 0..<61 * 8 {
            var altered = bytes
            altered[bit / 8] ^= 1 << UInt8(bit & 7)
            #expect(checksum(altered.span.bytes) != sum)
            let isInHole = (20..<28).contains(bit / 8)
            let holed = checksum(altered.span.bytes, skipping: 20..<28)
            #expect((holed == checksum(bytes.span.bytes, skipping: 20..<28)) == isInHole)
        }
        #expect(checksum((bytes + [0]).span.bytes) != sum)
        #expect(checksum(([0] + bytes).span.bytes) != sum)
        var swapped = bytes
        swapped.swapAt(3, 40)
        #expect(checksum(swapped.span.bytes) != sum)
        let none: [UInt8] = []
        #expect(checksum(none.span.bytes) != checksum(([0] as [UInt8]).span.bytes))
        // On every disk the same: it must not change with the program.
        #expect(sum == 0xB4F7_AF0A_A1E9_B5F1)
    }

    @Test func `a batch keeps its room, and gives each datagram its own bytes`() {
        var batch = DatagramBatch()
        var random = RandomStream(seed: 4)
        for _ in 0..<50 {
            batch.removeAll()
            #expect(batch.isEmpty)
            let payloads = (0..<random.below(20)).map { number in
                Array(repeating: UInt8(number), count: random.below(2_000))
            }
            for (number, payload) in payloads.enumerated() {
                if number % 2 == 0 {
                    batch.append(payload, remote: .v4(number))
                } else {
                    // Room for more than is written.
                    batch.append(to: .v4(number), from: .v4(9), socket: 3, limit: 2_000) { room in
                        room.copyBytes(from: payload)
                        return payload.count
                    }
                }
            }
            #expect(payloads.indices.map { batch.payload($0) } == payloads)
            #expect(batch.datagrams.map(\.remote) == payloads.indices.map { .v4($0) })
        }
    }

    // MARK: Time

    @Test func `spans and instants add up, and wrap rather than trap`() {
        #expect(Duration.seconds(1) == .milliseconds(1_000))
        #expect(Duration.milliseconds(1) == .microseconds(1_000))
        #expect(Duration.seconds(3) - .seconds(5) == .seconds(-2))
        #expect(Duration.seconds(3) * 4 == .seconds(12))
        #expect(Duration.milliseconds(-1_500).wholeSeconds == -1)
        #expect(Duration.milliseconds(2_999).wholeSeconds == 2)
        #expect(Duration.microseconds(2_999).wholeMilliseconds == 2)
        let start = Instant(nanoseconds: 5)
        #expect(start + .seconds(1) - start == .seconds(1))
        #expect(start - .seconds(1) < start)
        #expect(Instant(nanoseconds: .max) + .seconds(1) < start)
    }

    @Test func `wall time in seconds stays within 1970 and 2106`() {
        #expect(WallTime(milliseconds: 1_999).seconds == 1)
        #expect(WallTime(milliseconds: -5_000).seconds == 0)
        #expect(WallTime(milliseconds: .max).seconds == .max)
        #expect(WallTime(milliseconds: 4_294_967_295_999).seconds == .max)
    }

    @Test func `nil is no deadline`() {
        let early = Instant(nanoseconds: 1)
        let late = Instant(nanoseconds: 2)
        #expect(earliest(nil, nil) == nil)
        #expect(earliest(early, nil) == early)
        #expect(earliest(nil, late) == late)
        #expect(earliest(late, early) == early)
        #expect(earliest(early, late) == early)
    }
}
