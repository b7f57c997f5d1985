/// The data that the revalidation of a value needs: its entity tag and date, and whether it can be used meanwhile.
///
/// As text it has a first line that marks it and one line for each property, so that it can be stored with the
/// value. A text without that mark is read as an entity tag.
struct HTTPValidator: Hashable {
  var entityTag: String?
  var lastModified: String?
  /// The Cache-Control and Expires fields that the value came with, which apply again after a 304 without them.
  var cacheControl: String?
  var expires: String?
  /// The Vary field, likewise.
  var vary: String?
  /// The URL that the value came from, if it is not the requested one.
  var location: String?
  /// The time when the value becomes stale, in seconds since 1970-01-01T00:00Z; `nil` if it is unknown.
  var staleFrom: Int64?
  /// The seconds after that in which it can be used in place of an error.
  var staleIfError: Int64?
  /// Whether it must not be used in place of an error.
  var forbidsStale = false
  /// Whether the server has named no lifetime, so that the policy of the cache decides.
  var leavesLifetimeOpen = false

  /// Whether a value can be used after revalidation has failed with an error status.
  func allowsStaleAfterError(now: Int64) -> Bool {
    guard !forbidsStale, let staleFrom, let staleIfError, staleIfError > 0 else { return false }
    // It can come from a file that another program has written.
    let (end, overflows) = staleFrom.addingReportingOverflow(staleIfError)
    return overflows || now < end
  }

  /// Whether a value must not be used, however revalidation has ended.
  func forbidsUse(now: Int64) -> Bool {
    forbidsStale && !leavesLifetimeOpen && now >= staleFrom ?? .min
  }

  /// Whether a 304 is about this version.
  ///
  /// - Parameters:
  ///   - tag: The entity tag of the answer.
  ///   - date: Its date of modification.
  /// - Returns: Whether neither is another one.
  func matches(entityTag tag: String?, lastModified date: String?) -> Bool {
    if let tag, let entityTag { return tag.withoutWeakness == entityTag.withoutWeakness }
    guard let date, let lastModified else { return true }
    return date == lastModified
  }

  private static let mark = "plexus-http-1"

  /// The text to keep.
  var text: String {
    var lines = [Self.mark]
    if let entityTag { lines.append("e=" + entityTag) }
    if let lastModified { lines.append("m=" + lastModified) }
    if let cacheControl { lines.append("c=" + cacheControl) }
    if let expires { lines.append("x=" + expires) }
    if let vary { lines.append("v=" + vary) }
    if let location { lines.append("u=" + location) }
    if let staleFrom { lines.append("s=\(staleFrom)") }
    if let staleIfError { lines.append("i=\(staleIfError)") }
    if forbidsStale { lines.append("f=1") }
    if leavesLifetimeOpen { lines.append("o=1") }
    return lines.map(\.asLine).joined(separator: "\n")
  }

  /// Creates one without anything to ask for.
  init() {}

  /// Reads a text.
  init(text: String) {
    let lines = text.split(separator: "\n")
    guard lines.first.map(String.init) == Self.mark else {
      entityTag = text
      return
    }
    for line in lines.dropFirst() {
      let value = String(line.dropFirst(2))
      switch line.prefix(2) {
      case "e=": entityTag = value
      case "m=": lastModified = value
      case "c=": cacheControl = value
      case "x=": expires = value
      case "v=": vary = value
      case "u=": location = value
      case "s=": staleFrom = Int64(value)
      case "i=": staleIfError = Int64(value)
      case "f=": forbidsStale = true
      case "o=": leavesLifetimeOpen = true
      default: break
      }
    }
  }
}

extension String {
  fileprivate var withoutWeakness: Substring { hasPrefix("W/") ? dropFirst(2) : self[...] }

  /// The text with a space in place of every control character.
  fileprivate var asLine: String {
    guard utf8.contains(where: { $0 < 32 }) else { return self }
    return String(String.UnicodeScalarView(unicodeScalars.map { $0.value < 32 ? " " : $0 }))
  }
}
