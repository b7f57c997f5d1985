internal import PlexusSupport

/// The names of the files that store the values of one type.
///
/// All names begin with a tag for the type, so cachers of several types can share a directory. A name
/// consists of lowercase ASCII letters, digits and `.-_~=`, has at most 120 bytes, and is unique on
/// case-insensitive file systems.
///
/// A key of up to 80 bytes that consists of lowercase letters, digits, `.-_` and at most one slash
/// appears in the name unchanged, with `=` for the slash. For any other key, the name contains `~`, a
/// short excerpt and the SHA-256 digest of the key's UTF-8 bytes.
struct FileNames: Sendable {
  /// The common prefix of the names.
  let tag: String

  /// Creates the names for a type.
  ///
  /// - Parameter type: The type. Types of the same name in other modules or scopes get other names.
  init(_ type: Any.Type) {
    self.init(type: Self.fullName(of: type), excerpt: "\(type)")
  }

  /// Creates the names for a type.
  ///
  /// - Parameters:
  ///   - type: The name of the type.
  ///   - excerpt: A shorter, readable name.
  init(type: String, excerpt: String? = nil) {
    let digest = SHA256.hexadecimalDigest(type.utf8)
    tag = Self.excerpt(of: excerpt ?? type, limit: 16) + "-" + digest.prefix(8)
  }

  /// Returns the name of a type with its module and its enclosing types, which is the same in every process.
  static func fullName(of type: Any.Type) -> String {
    // For local and private types, the name contains an address that differs between runs.
    String(reflecting: type).replacing(/\(unknown context at [^)]*\)\./, with: "")
  }

  /// The name of the file that records removals.
  var removals: String { "\(tag).removals" }

  /// The name of the log file.
  var log: String { "\(tag).log" }

  /// Returns the name of the file for a key.
  func file(forKey key: String) -> String {
    let bytes = key.utf8
    if !bytes.isEmpty, bytes.count <= 80 {
      let parts = bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      if parts.count <= 2, parts.allSatisfy({ $0.allSatisfy(Self.isPlain) }) {
        return "\(tag).\(parts.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "="))"
          + Self.entrySuffix
      }
    }
    let excerpt = Self.excerpt(of: key, limit: 20)
    return "\(tag).~\(excerpt)-\(SHA256.hexadecimalDigest(bytes))\(Self.entrySuffix)"
  }

  /// Returns the name of a temporary file.
  ///
  /// - Parameter number: A number that makes the name unique.
  /// - Returns: The name.
  func temporary(_ number: UInt64) -> String {
    "\(tag).\(String(number, radix: 16))\(Self.temporarySuffix)"
  }

  /// Returns whether a name belongs to an entry's file.
  func isEntry(_ name: String) -> Bool {
    name.hasPrefix(tag + ".") && name.hasSuffix(Self.entrySuffix)
  }

  /// Returns whether a name belongs to a temporary file.
  func isTemporary(_ name: String) -> Bool {
    name.hasPrefix(tag + ".") && name.hasSuffix(Self.temporarySuffix)
  }

  private static let entrySuffix = ".json"
  private static let temporarySuffix = ".tmp"

  private static func isPlain(_ byte: UInt8) -> Bool {
    isAlphanumeric(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-")
      || byte == UInt8(ascii: "_")
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
  }

  /// Returns the beginning of a text in lowercase, with a hyphen for each character except letters and digits.
  private static func excerpt(of text: String, limit: Int) -> String {
    let letters = text.utf8.prefix(limit).map { byte in
      let lower = UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte + 32 : byte
      return isAlphanumeric(lower) ? lower : UInt8(ascii: "-")
    }
    return String(decoding: letters, as: UTF8.self)
  }
}
