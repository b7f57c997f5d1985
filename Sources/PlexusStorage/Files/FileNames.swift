internal import PlexusSupport

/// The names of the files in which the values of one type are kept.
///
/// All names begin with a tag of that type, so that cachers of several types can share a directory. A
/// name consists of lower-case ASCII letters, digits and `.-_~=`, has at most 120 bytes and is the same
/// whether a file system tells upper from lower case or not.
///
/// A key of up to 80 bytes that consists of lower-case letters, digits and `.-_`, and of at most one slash,
/// stands in its name as it is, with `=` for the slash. Of any other key the name has a few readable characters and
/// the SHA-256 digest of its UTF-8 bytes. `~` marks those, so no two keys share a name.
struct FileNames: Sendable {
  /// What the names begin with.
  let tag: String

  /// Creates the names for a type.
  ///
  /// - Parameter type: The type, which is told from types of the same name elsewhere.
  init(_ type: Any.Type) {
    self.init(type: Self.fullName(of: type), excerpt: "\(type)")
  }

  /// Creates the names for a type.
  ///
  /// - Parameters:
  ///   - type: The name of the type.
  ///   - excerpt: A shorter one, for people.
  init(type: String, excerpt: String? = nil) {
    let digest = SHA256.hexadecimalDigest(type.utf8)
    tag = Self.excerpt(of: excerpt ?? type, limit: 16) + "-" + digest.prefix(8)
  }

  /// Returns the name of a type with those of its module and of the types around it, the same in every
  /// process.
  static func fullName(of type: Any.Type) -> String {
    // What belongs to a function or a file has an address instead, which differs from run to run.
    String(reflecting: type).replacing(/\(unknown context at [^)]*\)\./, with: "")
  }

  /// The name of the file that tells what was removed.
  var removals: String { "\(tag).removals" }

  /// The name of the log that holds all entries.
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

  /// Returns the name for a file that is being written.
  ///
  /// - Parameter number: What tells it from others.
  /// - Returns: The name.
  func temporary(_ number: UInt64) -> String {
    "\(tag).\(String(number, radix: 16))\(Self.temporarySuffix)"
  }

  /// Returns whether this is the name of a file for a key.
  func isEntry(_ name: String) -> Bool {
    name.hasPrefix(tag + ".") && name.hasSuffix(Self.entrySuffix)
  }

  /// Returns whether this is the name of a file that is or was being written.
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

  /// The beginning of a text with everything but letters and digits replaced.
  private static func excerpt(of text: String, limit: Int) -> String {
    let letters = text.utf8.prefix(limit).map { byte in
      let lower = UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte + 32 : byte
      return isAlphanumeric(lower) ? lower : UInt8(ascii: "-")
    }
    return String(decoding: letters, as: UTF8.self)
  }
}
