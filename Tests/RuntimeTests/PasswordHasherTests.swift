// Whether a password is the one that was hashed.

import Testing
import Web
import Wire

@Suite("Passwords")
struct PasswordHasherTests {
    /// RFC 7914, section 12, the third vector.
    private static let password = PasswordHash(
        log2N: 10, r: 8, p: 16, salt: Array("NaCl".utf8),
        hash: [
            0xFD, 0xBA, 0xBE, 0x1C, 0x9D, 0x34, 0x72, 0x00, 0x78, 0x56, 0xE7, 0x19, 0x0D, 0x01, 0xE9, 0xFE,
            0x7C, 0x6A, 0xD7, 0xCB, 0xC8, 0x23, 0x78, 0x30, 0xE7, 0x73, 0x76, 0x63, 0x4B, 0x37, 0x31, 0x62,
            0x2E, 0xAF, 0x30, 0xD9, 0x2E, 0x22, 0xA3, 0x88, 0x6F, 0xF1, 0x09, 0x27, 0x9D, 0x98, 0x30, 0xDA,
            0xC7, 0x27, 0xAF, 0xB9, 0x4A, 0x83, 0xEE, 0x6D, 0x83, 0x60, 0xCB, 0xDF, 0xA2, 0xCC, 0x06, 0x40,
        ])

    @Test func `the right password is right, and another one is not`() async {
        let hasher = PasswordHasher()
        #expect(await hasher.isRight("password", Self.password) == true)
        #expect(await hasher.isRight("Password", Self.password) == false)
        #expect(await hasher.isRight("password", nil) == false)
    }

    /// RFC 7914's first vector, which is cheap.
    ///
    /// One guess in 256 was right once, for `|` and `^` bind alike.
    @Test func `no guess is right by chance`() async {
        let hasher = PasswordHasher()
        let kept = PasswordHash(
            log2N: 4, r: 1, p: 1, salt: [],
            hash: [
                0x77, 0xD6, 0x57, 0x62, 0x38, 0x65, 0x7B, 0x20, 0x3B, 0x19, 0xCA, 0x42, 0xC1, 0x8A, 0x04, 0x97,
                0xF1, 0x6B, 0x48, 0x44, 0xE3, 0x07, 0x4A, 0xE8, 0xDF, 0xDF, 0xFA, 0x3F, 0xED, 0xE2, 0x14, 0x42,
                0xFC, 0xD0, 0x06, 0x9D, 0xED, 0x09, 0x48, 0xF8, 0x32, 0x6A, 0x75, 0x3A, 0x0F, 0xC8, 0x1F, 0x17,
                0xE8, 0xD3, 0xE0, 0xFB, 0x2E, 0x0D, 0x36, 0x28, 0xCF, 0x35, 0xE2, 0x0C, 0x38, 0xD1, 0x89, 0x06,
            ])
        #expect(await hasher.isRight("", kept) == true)
        for guess in 0..<4000 where await hasher.isRight("guess number \(guess)", kept) != false {
            Issue.record("guess number \(guess) is right")
        }
    }

    @Test func `hashes that differ in one bit differ`() {
        let hash = (0..<32).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ 7) }
        #expect(PasswordHasher.areSame(hash, hash))
        for bit in 0..<256 {
            var other = hash
            other[bit / 8] ^= 1 << (bit % 8)
            #expect(!PasswordHasher.areSame(hash, other))
        }
        #expect(!PasswordHasher.areSame(hash, Array(hash.dropLast())))
        #expect(!PasswordHasher.areSame([], []), "what could not be computed is nobody's hash")
    }
}
