internal import PlexusSupport

/// The keys under which a cacher stores the values of multiplexers and maps.
///
/// A name consists of a namespace and the text of a key with a slash in between. Without a namespace it is the
/// text alone, unless that contains a slash. Every name thus belongs to one namespace and one text.
@usableFromInline
enum StoredNames: Sendable {
  /// Returns the prefix of all names of a map; `nil` for a map without an id, which has the whole cacher.
  @usableFromInline
  static func prefix(ofID id: String?) -> String? {
    guard let id else { return nil }
    guard !id.isEmpty else { return "%/" }
    var prefix = ""
    for scalar in id.canonicalSpelling.unicodeScalars {
      switch scalar {
      case "%": prefix += "%25"
      case "/": prefix += "%2F"
      default: prefix.unicodeScalars.append(scalar)
      }
    }
    return prefix + "/"
  }

  /// Returns the name of a text in a namespace.
  @usableFromInline
  static func name(of text: String, prefix: String?) -> String {
    if let prefix { return prefix + text }
    return text.utf8.contains(UInt8(ascii: "/")) ? "/" + text : text
  }

  /// Returns the text of a key: equal keys have equal texts, and keys that are not equal have different ones.
  ///
  /// The text is the description of the key in its canonical spelling. If that spelling does not lead back to the
  /// key, the description is percent-encoded after a percent sign.
  @usableFromInline
  static func text<Key: Hashable & LosslessStringConvertible>(of key: Key) -> String {
    let description = key.description
    if isPlain(description) { return description }
    let spelling = description == "-0.0" ? "0.0" : description.canonicalSpelling
    guard Key(spelling) == key else { return spelledOut(description) }
    return spelling.utf8.first == UInt8(ascii: "%") ? spelledOut(spelling) : spelling
  }

  /// Returns whether a description has one spelling only.
  private static func isPlain(_ description: String) -> Bool {
    let bytes = description.utf8
    return bytes.allSatisfy { $0 < 0x80 } && bytes.first != UInt8(ascii: "%")
      && description != "-0.0"
  }

  private static func spelledOut(_ text: String) -> String {
    var result = "%"
    for byte in text.utf8 {
      if byte < 0x80, byte != UInt8(ascii: "%") {
        result.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        result += "%" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
      }
    }
    return result
  }
}
