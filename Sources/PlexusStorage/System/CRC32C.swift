// Unsafe: the bytes are read eight at a time through a buffer pointer, within its bounds. Checked array
// accesses are several times slower, and every record is checksummed.

/// The CRC-32C (Castagnoli) checksum, which detects every error burst of up to 32 bits.
struct CRC32C: Sendable {
  private var state: UInt32 = ~0

  /// The checksum of the bytes added so far.
  var value: UInt32 { ~state }

  /// Returns the checksum of some bytes.
  static func checksum(_ bytes: some Collection<UInt8>) -> UInt32 {
    var checksum = CRC32C()
    checksum.update(bytes)
    return checksum.value
  }

  /// Adds bytes.
  mutating func update(_ bytes: some Collection<UInt8>) {
    let wasContiguous: Void? = bytes.withContiguousStorageIfAvailable { buffer in
      unsafe update(UnsafeRawBufferPointer(buffer))
    }
    guard wasContiguous == nil else { return }
    for byte in bytes { state = Self.step(state, byte) }
  }

  private mutating func update(_ bytes: UnsafeRawBufferPointer) {
    var state = state
    var offset = 0
    unsafe Self.tables.withUnsafeBufferPointer { tables in
      while offset + 8 <= bytes.count {
        let low =
          unsafe state
          ^ UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        let high =
          unsafe UInt32(
            littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
          )
        let first = unsafe tables[1792 + Int(low & 255)] ^ tables[1536 + Int(low >> 8 & 255)]
        let second = unsafe tables[1280 + Int(low >> 16 & 255)] ^ tables[1024 + Int(low >> 24)]
        let third = unsafe tables[768 + Int(high & 255)] ^ tables[512 + Int(high >> 8 & 255)]
        let fourth = unsafe tables[256 + Int(high >> 16 & 255)] ^ tables[Int(high >> 24)]
        state = first ^ second ^ third ^ fourth
        offset += 8
      }
    }
    while offset < bytes.count {
      state = Self.step(state, unsafe bytes[offset])
      offset += 1
    }
    self.state = state
  }

  private static func step(_ state: UInt32, _ byte: UInt8) -> UInt32 {
    tables[Int((state ^ UInt32(byte)) & 255)] ^ state >> 8
  }

  /// Eight tables of 256 entries: the effect of a byte that is followed by zero to seven others.
  private static let tables: [UInt32] = {
    var tables = (0..<256).map { (byte: UInt32) in
      (0..<8).reduce(byte) { value, _ in value & 1 == 1 ? 0x82f6_3b78 ^ value >> 1 : value >> 1 }
    }
    for index in 256..<2048 {
      let previous = tables[index - 256]
      tables.append(tables[Int(previous & 255)] ^ previous >> 8)
    }
    return tables
  }()
}
