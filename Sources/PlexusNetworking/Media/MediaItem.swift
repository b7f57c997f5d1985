internal import Foundation
internal import PlexusSupport

/// A request in the form in which it is carried out.
///
/// Two of the same key are equal, since they stand for the same file, unless they are requests of different variants of
/// an image.
struct MediaItem: Hashable, Sendable {
  /// The absolute URL, without its fragment.
  let url: URL
  /// The header fields, without the fields that the loader sets.
  let headers: [String: String]
  let key: String
  let priority: TaskPriority?
  /// The image that is made of the file; `nil` for the whole one, and at a loader of files.
  private(set) var variant: ImageVariant?

  /// Creates an item.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - hasVariant: Whether the variant counts.
  init(_ request: MediaRequest, hasVariant: Bool = false) {
    url = request.url.asSent
    headers = request.headers.isEmpty ? [:] : request.headers.filter { !Self.isReserved($0.key) }
    key = request.cacheKey?.canonicalSpelling ?? url.absoluteString
    priority = request.priority
    if hasVariant { variant = request.variant }
  }

  /// The item of the file, whatever is made of it.
  var ofFile: MediaItem {
    guard variant != nil else { return self }
    var result = self
    result.variant = nil
    return result
  }

  /// The name in the line of the decoders: the key of the file, and the variant.
  var decodingKey: String {
    guard let variant else { return key }
    return "\(key)\n\(variant)"
  }

  /// The urgency of the item to the caller.
  var callerPriority: TaskPriority { priority ?? Task.currentPriority }

  /// Whether two items lead to the same request, apart from its conditions.
  func isSent(like other: MediaItem) -> Bool {
    url == other.url && headers == other.headers
  }

  static func == (one: MediaItem, other: MediaItem) -> Bool {
    one.key == other.key && one.variant == other.variant
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(key)
    if let variant { hasher.combine(variant) }
  }

  /// Whether the loader sets a header field itself.
  private static func isReserved(_ name: String) -> Bool {
    let name = name.lowercased()
    return name == "accept-encoding" || name == "range" || name.hasPrefix("if-")
  }
}

/// An item together with the name of its file, which takes a digest to compute.
struct MediaEntry: Hashable, Sendable {
  let item: MediaItem
  let name: String

  init(_ item: MediaItem) {
    self.item = item
    name = MediaFolder.name(ofKey: item.key)
  }

  init(_ request: MediaRequest) {
    self.init(MediaItem(request))
  }

  var url: URL { item.url }

  static func == (one: MediaEntry, other: MediaEntry) -> Bool { one.name == other.name }

  func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension URL {
  /// The same URL as an absolute one, without its fragment.
  var asSent: URL {
    // A file is used as it was named.
    guard !isFileURL else { return self }
    guard fragment() != nil,
      var components = URLComponents(url: self, resolvingAgainstBaseURL: true)
    else { return absoluteURL }
    components.fragment = nil
    return components.url ?? absoluteURL
  }
}
