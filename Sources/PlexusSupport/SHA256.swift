// The pointers are unsafe and right for these reasons. The schedule is a temporary allocation of sixteen words that
// are all written before they are read, and every index into it is below sixteen. The constants are those of an
// array of 64 words, read at indices below 64. The bytes of a caller are read during the call that lends them, in
// whole blocks whose number is that of the bytes divided by 64.

/// A SHA-256 digest (FIPS 180-4) of bytes that arrive piece by piece.
package struct SHA256: Sendable {
  private var hash = SIMD8<UInt32>(
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19
  )
  /// The bytes that do not make up a block yet.
  private var rest: [UInt8] = []
  private var byteCount: UInt64 = 0

  /// Creates the digest of no bytes.
  package init() {}

  /// Returns the digest of a message as 64 lowercase hexadecimal digits.
  package static func hexadecimalDigest(_ message: some Sequence<UInt8>) -> String {
    var digest = SHA256()
    digest.update(Array(message))
    return digest.hexadecimalDigest()
  }

  /// Processes the next bytes.
  package mutating func update(_ bytes: [UInt8]) {
    unsafe bytes.withUnsafeBytes { unsafe update($0) }
  }

  /// Processes the next bytes.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    byteCount &+= UInt64(bytes.count)
    var position = 0
    if !rest.isEmpty {
      position = min(64 - rest.count, bytes.count)
      unsafe rest.append(contentsOf: bytes[..<position])
      guard rest.count == 64 else { return }
      let block = rest
      unsafe block.withUnsafeBytes { unsafe compress($0) }
      rest.removeAll(keepingCapacity: true)
    }
    let blocksEnd = bytes.count - (bytes.count - position) % 64
    unsafe compress(UnsafeRawBufferPointer(rebasing: bytes[position..<blocksEnd]))
    unsafe rest.append(contentsOf: bytes[blocksEnd...])
  }

  /// Returns the digest of all bytes so far in 64 lower-case hexadecimal digits.
  package func hexadecimalDigest() -> String {
    var copy = self
    let bitCount = byteCount &* 8
    var padding = [UInt8](repeating: 0, count: (119 - rest.count) % 64 + 1)
    padding[0] = 0x80
    padding += (0..<8).map { UInt8(truncatingIfNeeded: bitCount >> (56 - 8 * $0)) }
    copy.update(padding)
    let digits = Array("0123456789abcdef".utf8)
    let text = copy.hash.indices.flatMap { index in
      (0..<8).map { digits[Int(copy.hash[index] >> (28 - 4 * UInt32($0)) & 15)] }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Processes whole blocks of 64 bytes.
  private mutating func compress(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count > 0 else { return }
    var hash = hash
    unsafe Self.constants.withUnsafeBufferPointer { constants in
      unsafe withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 16) { schedule in
        for start in stride(from: 0, to: bytes.count, by: 64) {
          for index in 0..<16 {
            let word = unsafe bytes.loadUnaligned(
              fromByteOffset: start &+ 4 &* index,
              as: UInt32.self
            )
            unsafe schedule[index] = UInt32(bigEndian: word)
          }
          unsafe Self.compress(&hash, schedule, constants)
        }
      }
    }
    self.hash = hash
  }

  /// Processes the block in a schedule, which is overwritten.
  @inline(__always)
  private static func compress(
    _ hash: inout SIMD8<UInt32>,
    _ schedule: UnsafeMutableBufferPointer<UInt32>,
    _ constants: UnsafeBufferPointer<UInt32>
  ) {
    var (a, b, c, d) = (hash[0], hash[1], hash[2], hash[3])
    var (e, f, g, h) = (hash[4], hash[5], hash[6], hash[7])
    var base = 0
    while true {
      // Eight rounds after which every variable has its own name again.
      for half in 0..<2 {
        let first = 8 &* half
        @inline(__always) func word(_ offset: Int) -> UInt32 {
          let place = first &+ offset
          return unsafe schedule[place] &+ constants[base &+ place]
        }
        round(a, b, c, &d, e, f, g, &h, word(0))
        round(h, a, b, &c, d, e, f, &g, word(1))
        round(g, h, a, &b, c, d, e, &f, word(2))
        round(f, g, h, &a, b, c, d, &e, word(3))
        round(e, f, g, &h, a, b, c, &d, word(4))
        round(d, e, f, &g, h, a, b, &c, word(5))
        round(c, d, e, &f, g, h, a, &b, word(6))
        round(b, c, d, &e, f, g, h, &a, word(7))
      }
      base &+= 16
      if base == 64 { break }
      // The next sixteen words take the places of the last ones.
      for index in 0..<16 {
        let early = unsafe schedule[(index &+ 1) & 15]
        let late = unsafe schedule[(index &+ 14) & 15]
        let small = rotate(early, 7) ^ rotate(early, 18) ^ early &>> 3
        let large = rotate(late, 17) ^ rotate(late, 19) ^ late &>> 10
        unsafe schedule[index] =
          schedule[index] &+ small &+ schedule[(index &+ 9) & 15] &+ large
      }
    }
    hash &+= SIMD8(a, b, c, d, e, f, g, h)
  }

  /// Performs one round; the new values of the fourth and last variable are those of the fifth and first of the next.
  @inline(__always)
  private static func round(
    _ a: UInt32,
    _ b: UInt32,
    _ c: UInt32,
    _ d: inout UInt32,
    _ e: UInt32,
    _ f: UInt32,
    _ g: UInt32,
    _ h: inout UInt32,
    _ word: UInt32
  ) {
    let upper = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
    let choice = g ^ e & (f ^ g)
    let first = h &+ upper &+ choice &+ word
    let lower = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
    let majority = a & b | c & (a | b)
    d &+= first
    h = first &+ lower &+ majority
  }

  @inline(__always)
  private static func rotate(_ word: UInt32, _ count: UInt32) -> UInt32 {
    word &>> count | word &<< (32 &- count)
  }

  private static let constants: [UInt32] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4,
    0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7,
    0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc,
    0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351,
    0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e,
    0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585,
    0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f,
    0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7,
    0xc671_78f2,
  ]
}
