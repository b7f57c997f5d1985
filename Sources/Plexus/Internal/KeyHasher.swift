/// The hash function of the tables behind multiplexers.
///
/// Integers and ASCII strings, which nearly all keys are, are hashed several times faster than
/// by `Hasher`, which serves every other type. Every table draws a seed of its own, so that nobody
/// outside the process can prepare keys that collide.
@usableFromInline
struct KeyHasher: Sendable {
  @usableFromInline let seed: UInt64

  @inlinable
  init(seed: UInt64 = .random(in: 1 ... .max)) {
    self.seed = seed
  }

  /// The hash of a key: equal keys have equal hashes, and every bit of it can be used.
  @inlinable
  func hash<Key: Hashable>(_ key: Key) -> UInt64 {
    // The comparison of types is decided at compile time where the function is specialised.
    if Key.self == Int.self, let key = key as? Int {
      return hash(bits: UInt64(bitPattern: Int64(key)))
    }
    if Key.self == String.self, let key = key as? String { return hash(string: key) }
    if Key.self == Int64.self, let key = key as? Int64 {
      return hash(bits: UInt64(bitPattern: key))
    }
    if Key.self == Int32.self, let key = key as? Int32 {
      return hash(bits: UInt64(UInt32(bitPattern: key)))
    }
    if Key.self == UInt.self, let key = key as? UInt { return hash(bits: UInt64(key)) }
    if Key.self == UInt64.self, let key = key as? UInt64 { return hash(bits: key) }
    if Key.self == UInt32.self, let key = key as? UInt32 { return hash(bits: UInt64(key)) }
    return systemHash(key)
  }

  /// The hash by the standard library, for keys of which nothing is known.
  @inlinable
  func systemHash(_ key: some Hashable) -> UInt64 {
    var hasher = Hasher()
    hasher.combine(key)
    return UInt64(truncatingIfNeeded: hasher.finalize()) ^ seed
  }

  @inlinable
  func hash(bits: UInt64) -> UInt64 {
    Self.fold(bits ^ seed, 0x9E37_79B9_7F4A_7C15)
  }

  /// The hash of a string.
  ///
  /// Strings are equal if they are canonically equivalent. Exactly three scalars outside ASCII are
  /// equivalent to an ASCII one; a string of those and of ASCII is hashed like its ASCII twin, and
  /// whatever else is not ASCII is left to `Hasher`, which normalises.
  @usableFromInline
  func hash(string: String) -> UInt64 {
    let fast = unsafe string.utf8.withContiguousStorageIfAvailable { bytes in
      unsafe hash(ascii: UnsafeRawBufferPointer(bytes))
    }
    // Not nil: the bytes were at hand, and nil inside: they were not ASCII.
    if let fast, let hash = fast { return hash }
    guard let twin = Self.asciiTwin(of: string) else { return systemHash(string) }
    return unsafe twin.withUnsafeBytes { bytes in
      unsafe hash(ascii: bytes) ?? systemHash(string)
    }
  }

  /// The hash of the bytes, or `nil` if one of them is not ASCII.
  private func hash(ascii bytes: UnsafeRawBufferPointer) -> UInt64? {
    let count = bytes.count
    var hash = seed ^ UInt64(truncatingIfNeeded: count)
    var seen: UInt64 = 0
    var index = 0
    while count &- index >= 16 {
      let first = unsafe bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      let second = unsafe bytes.loadUnaligned(fromByteOffset: index &+ 8, as: UInt64.self)
      seen |= first | second
      hash = Self.fold(first ^ 0xA076_1D64_78BD_642F ^ hash, second ^ 0xE703_7ED1_A0B4_28DB)
      index &+= 16
    }
    var first: UInt64 = 0
    var second: UInt64 = 0
    let rest = count &- index
    if rest > 0 {
      // Overlapping reads cover whatever is left without looking at single bytes.
      if count >= 8 {
        first = unsafe bytes.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
        if rest > 8 {
          second = unsafe bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        }
      } else if count >= 4 {
        first = unsafe UInt64(bytes.loadUnaligned(fromByteOffset: 0, as: UInt32.self))
        second = unsafe UInt64(bytes.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
      } else {
        for offset in 0..<count {
          first = unsafe first << 8 | UInt64(bytes[offset])
        }
      }
    }
    seen |= first | second
    guard seen & 0x8080_8080_8080_8080 == 0 else { return nil }
    return Self.fold(first ^ 0x8EBC_6AF0_9C88_C6E3 ^ hash, second ^ 0x5899_65CC_7537_4CC3 ^ seed)
  }

  /// The ASCII bytes that the string is canonically equivalent to, if there are any.
  private static func asciiTwin(of string: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(string.utf8.count)
    for scalar in string.unicodeScalars {
      switch scalar.value {
      case 0..<0x80: bytes.append(UInt8(truncatingIfNeeded: scalar.value))
      case 0x212A: bytes.append(UInt8(ascii: "K"))
      case 0x037E: bytes.append(UInt8(ascii: ";"))
      case 0x1FEF: bytes.append(UInt8(ascii: "`"))
      default: return nil
      }
    }
    return bytes
  }

  /// Multiplies in full width and folds both halves: the cheapest good way to mix 64 bits.
  @inlinable
  static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }
}
