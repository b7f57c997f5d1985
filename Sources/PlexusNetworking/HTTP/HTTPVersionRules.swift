internal import Foundation

/// The rules that decide whether a 304 confirms a version (RFC 9110, 13), the same for values and for files.
extension HTTPValidator {
  /// The header fields that ask whether the version has changed; empty if there is nothing to ask by.
  var conditions: [String: String] {
    var fields: [String: String] = [:]
    if let entityTag { fields["If-None-Match"] = entityTag }
    if let lastModified { fields["If-Modified-Since"] = lastModified }
    return fields
  }

  /// Whether a 304 confirms the version: it comes from the same place and names no other tag or date.
  ///
  /// - Parameters:
  ///   - location: The place that has answered, if it is another one than was requested.
  ///   - field: Returns a header field of the 304.
  /// - Returns: Whether it is about this version.
  func isConfirmed(from location: String?, _ field: (String) -> String?) -> Bool {
    location == self.location
      && matches(entityTag: field("ETag"), lastModified: field("Last-Modified"))
  }
}

/// The beginning of a body, and the rules that decide whether an answer continues it (RFC 9110, 14).
struct HTTPPart: Hashable, Sendable {
  /// The strong entity tag or the date of its version; empty if nothing can continue it.
  var validator = ""
  /// A text for the place that it came from, if it is another one than was requested.
  var location = ""
  /// The number of bytes.
  var length: Int64 = 0
  /// The length of the whole body, if it was announced.
  var total: Int64?

  /// The header fields that ask for the rest; empty if there is nothing to continue.
  var conditions: [String: String] {
    guard length > 0, !validator.isEmpty else { return [:] }
    return ["Range": "bytes=\(length)-", "If-Range": validator]
  }

  /// Returns the length of the whole body if a 206 continues the part.
  ///
  /// It comes from the same place, begins with the next byte, names no other tag or date, and its total is the length
  /// that was announced.
  ///
  /// - Parameters:
  ///   - place: The place that has answered, as in ``location``.
  ///   - field: Returns a header field of the 206.
  /// - Returns: The length; `nil` if the 206 is of another version, or is no continuation.
  func total(continuedFrom place: String, by field: (String) -> String?) -> Int64? {
    guard place == location, let range = Self.contentRange(field("Content-Range")),
      range.start == length,
      total.map({ $0 == range.total }) ?? true
    else { return nil }
    let named = HTTPDate.seconds(validator) == nil ? field("ETag") : field("Last-Modified")
    return named.map { $0 == validator } ?? true ? range.total : nil
  }

  /// Returns the validator that a part is continued by: a strong entity tag, or a date of modification that is older
  /// than the answer, since a body may change twice in a second (RFC 9110, 8.8.2.2); empty if there is neither.
  static func validator(_ field: (String) -> String?) -> String {
    if let tag = field("ETag") { return tag.hasPrefix("W/") ? "" : tag }
    guard
      let date = field("Last-Modified"), let changed = HTTPDate.seconds(date),
      let sent = field("Date").flatMap({ HTTPDate.seconds($0) }), changed < sent
    else { return "" }
    return date
  }

  /// Reads `bytes 5-9/10`.
  private static func contentRange(_ text: String?) -> (start: Int64, total: Int64)? {
    guard let text, text.lowercased().hasPrefix("bytes ") else { return nil }
    let words = text.dropFirst(6).split(omittingEmptySubsequences: false) { "-/".contains($0) }
    let numbers = words.compactMap { Int64($0) }
    guard words.count == 3, numbers.count == 3, numbers[0] <= numbers[1], numbers[1] < numbers[2]
    else { return nil }
    return (numbers[0], numbers[2])
  }
}
