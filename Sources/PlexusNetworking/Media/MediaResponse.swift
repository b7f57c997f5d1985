public import Foundation

/// The origin and the type of the bytes that a decoder is given.
public struct MediaResponse: Sendable, Hashable {
  /// The URL that was requested.
  public let url: URL
  /// The local file with the bytes, which is there until the decoder returns; `nil` if they are in memory alone.
  public let file: URL?
  /// The media type that the server has named (Content-Type), such as `image/png`; `nil` if it has not, and for
  /// file URLs.
  public let type: String?
  /// The image that is requested; `nil` for the whole one.
  public let variant: ImageVariant?

  /// Creates a response, for instance to test a decoder.
  ///
  /// - Parameters:
  ///   - url: The URL that was requested.
  ///   - file: The local file with the bytes.
  ///   - type: The media type.
  ///   - variant: The image that is requested.
  public init(url: URL, file: URL? = nil, type: String? = nil, variant: ImageVariant? = nil) {
    self.url = url
    self.file = file
    self.type = type
    self.variant = variant
  }
}
