import Foundation
import Plexus
import PlexusInspector
import PlexusNetworking

/// The badge of an airline: the background color of its code.
struct Badge: Hashable, Sendable {
  /// An error for a file that is not a badge.
  struct Malformed: Error {}

  /// The number of the color in a terminal's palette of 256 colors.
  let color: UInt8

  /// Decodes a file, which consists of the number in decimal digits and a line feed.
  init(_ data: Data) throws {
    let text = String(decoding: data, as: UTF8.self)
    // Without the end, some digits may be missing.
    guard text.hasSuffix("\n"), let color = UInt8(text.dropLast()) else { throw Malformed() }
    self.color = color
  }
}

/// The badges of airlines, downloaded from the origin.
///
/// Concurrent requests for a badge share one download. The file is kept for later runs and decoded once. If a badge is
/// not available, the airline is shown without one.
struct Badges: Sendable {
  private let origin: String
  private let media: MediaLoader
  private let images: ImageLoader<Badge>

  /// Creates an empty collection of badges.
  ///
  /// - Parameters:
  ///   - origin: The address of the origin.
  ///   - folder: The folder for the files.
  init(origin: String, folder: URL) {
    self.origin = origin
    // A row does not wait for an unavailable origin; the next row requests the badge again.
    media = MediaLoader(directory: folder, byteLimit: 1 << 20, retry: .never)
    images = ImageLoader(media: media) { data in try Badge(data) }
  }

  /// Shows the decoded badges and the downloads on the page of an inspector.
  func add(to inspector: Inspector) {
    inspector.add(images, named: "badges")
    inspector.add(media, named: "badge files")
  }

  /// Returns the badge of an airline, or `nil` if it is not available at present.
  func badge(of carrier: String) async -> Badge? {
    let path = "badges/\(carrier)"
    guard let url = URL(string: "\(origin)/\(path)") else { return nil }
    // The port of the origin differs between runs, so the URL does not identify the file.
    return try? await images.request(MediaRequest(url, cacheKey: path))
  }
}
