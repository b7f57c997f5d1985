/// Returns zeros by gzip: about 160 of them for each byte.
///
/// - Parameter count: How many zeros, a multiple of 258 and one more.
func gzipBomb(_ count: Int) -> [UInt8] {
  var bytes: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 3]
  var buffer = 0
  var used = 0
  func append(_ bits: Int, _ width: Int) {
    buffer |= bits << used
    used += width
    while used >= 8 {
      bytes.append(UInt8(truncatingIfNeeded: buffer))
      buffer >>= 8
      used -= 8
    }
  }
  // One block of fixed codes: a zero, then copies of 258 bytes from the byte before.
  append(1, 1)
  append(1, 2)
  append(0b0000_1100, 8)
  // The code of the length has its first bit first; that of the distance is zero.
  for _ in 0..<((count - 1) / 258) { append(0b1010_0011, 13) }
  append(0, 7)
  append(0, 7)
  // The checksum is wrong: who reads that far has read everything.
  return bytes + [0, 0, 0, 0, 0, 0, 0, 0]
}
