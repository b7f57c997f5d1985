public import Foundation

/// An error of a ``MediaLoader`` that is not one of the network.
@nonexhaustive
public enum MediaError: Error, Hashable, Sendable {
  /// The URL is neither http, https nor file.
  case unsupportedScheme(URL)

  /// There is no file at a file URL.
  case noSuchFile(URL)

  /// The bytes have another digest than the requested one.
  case wrongChecksum(expected: String, found: String)

  /// The server has sent another length or part than it announced, and again after a second request.
  case inconsistentLength

  /// The file is larger than the loader's limit for one file.
  case fileTooLarge(limit: Int64)

  /// The file was removed, or the loader cleared, during the download.
  case cleared

  /// A side of the requested variant is not positive, or too long.
  case invalidVariant(ImageVariant)
}

extension MediaError: CustomStringConvertible {
  /// A sentence that says what happened and what to do about it.
  public var description: String {
    switch self {
    case .unsupportedScheme(let url):
      "\(url) cannot be loaded; use an http, https or file URL."
    case .noSuchFile(let url):
      "There is no file at \(url)."
    case .wrongChecksum(let expected, let found):
      "The file has the SHA-256 digest \(found), not \(expected)."
    case .inconsistentLength:
      "The server sent a different number of bytes than it announced."
    case .fileTooLarge(let limit):
      "The file has more than \(limit) bytes, the loader's limit for one file."
    case .cleared:
      "The file was removed, or the loader cleared, during the download; request it again."
    case .invalidVariant(let variant):
      """
      No image has \(variant) pixels; the sides of a variant are from 1 to \(ImageVariant.maximumSide). Request it when the \
      view has a size.
      """
    }
  }
}
