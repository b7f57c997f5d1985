internal import Foundation

extension String {
  /// The composed spelling (NFC): texts that are equal in Swift have the same bytes.
  var composed: String {
    utf8.allSatisfy { $0 < 0x80 } ? self : precomposedStringWithCanonicalMapping
  }
}
