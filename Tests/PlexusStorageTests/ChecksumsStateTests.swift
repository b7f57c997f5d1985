import PlexusSupport
import TestSupport
import Testing

@testable import PlexusStorage

@Suite(.fewAtOnce) struct `Checksums` {
  // RFC 3720, appendix B.4, and the check value of the catalog of CRC algorithms.
  private static let published: [(bytes: [UInt8], checksum: UInt32)] = [
    ([], 0),
    (Array("123456789".utf8), 0xe306_9283),
    ([UInt8](repeating: 0, count: 32), 0x8a91_36aa),
    ([UInt8](repeating: 0xff, count: 32), 0x62a8_ab43),
    (Array(0..<32), 0x46dd_794e),
    (Array((0..<32).reversed()), 0x113f_db5c),
  ]

  @Test(arguments: published)
  func `CRC-32C gives the values that are published`(bytes: [UInt8], expected: UInt32) {
    #expect(CRC32C.checksum(bytes) == expected)
  }

  @Test func `CRC-32C does not depend on how the bytes come`() {
    let bytes = (0..<100).map { UInt8($0 * 7 & 255) }
    let expected = CRC32C.checksum(bytes)
    for split in 0...100 {
      var checksum = CRC32C()
      checksum.update(bytes[..<split])
      checksum.update(bytes[split...])
      #expect(checksum.value == expected)
    }
    #expect(CRC32C.checksum(AnyCollection(bytes.lazy.map { $0 })) == expected)
  }

  // FIPS 180-4 and its example messages.
  @Test(arguments: [
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
    (
      "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
    ),
  ])
  func `SHA-256 gives the values that are published`(message: String, expected: String) {
    #expect(SHA256.hexadecimalDigest(message.utf8) == expected)
  }

  @Test func `SHA-256 pads messages of every length`() {
    // The digest of the digests of 0, 1, ... 199 letters a, as computed by sha256sum.
    let digests = (0..<200).map {
      SHA256.hexadecimalDigest(repeatElement(UInt8(ascii: "a"), count: $0))
    }
    #expect(
      SHA256.hexadecimalDigest(digests.joined().utf8)
        == "019f2b9f1af27a53a1f046da7e98af2c179f431e4b5bebb000e74040917a4123"
    )
  }

  // FIPS 180-4 and its example messages.
  @Test(arguments: [
    ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
    ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
    ),
  ])
  func `SHA-1 gives the values that are published`(message: String, expected: String) {
    #expect(SHA1.hexadecimalDigest(message.utf8) == expected)
  }

  @Test func `SHA-1 pads messages of every length`() {
    // The digest of the digests of 0, 1, ... 199 letters a, as computed by sha1sum.
    let digests = (0..<200).map {
      SHA1.hexadecimalDigest(repeatElement(UInt8(ascii: "a"), count: $0))
    }
    let digest = SHA1.hexadecimalDigest(digests.joined().utf8)
    #expect(digest == "cb062fe66512892ec8c722ee74ff9ac151cc4b61")
  }

  @Test func `SHA-256 takes a message in pieces of any length`() {
    let message = (0..<1_000).map { UInt8(truncatingIfNeeded: $0) }
    let whole = SHA256.hexadecimalDigest(message)
    for length in 1..<200 {
      var digest = SHA256()
      for start in stride(from: 0, to: message.count, by: length) {
        digest.update(Array(message[start..<min(start + length, message.count)]))
        _ = digest.hexadecimalDigest()
      }
      #expect(digest.hexadecimalDigest() == whole)
    }
  }
}
