import Foundation
import Plexus
import PlexusInspector
import PlexusNetworking

/// The badge of an airline: the background color of its code.
struct Badge: Hashable, Sendable {
  /// An error for a file that is not a badge.
  struct Malformed: Error {}

  /// The number of the color in a terminal's palette.
  let color: UInt8

  /// Decodes a file, which consists of the number among 256 colors in decimal digits and a line feed.
  ///
  /// - Parameters:
  ///   - data: The file.
  ///   - variant: `nil` for the color of the file, or the variant of terminals with fewer colors.
  /// - Throws: ``Malformed`` if it is something else.
  init(_ data: Data, variant: ImageVariant? = nil) throws {
    let text = String(decoding: data, as: UTF8.self)
    // Without the end, some digits may be missing.
    guard text.hasSuffix("\n"), let color = UInt8(text.dropLast()) else { throw Malformed() }
    self.color = variant == .sixteenColors ? Self.bright(color) : color
  }

  /// Returns the bright one of 16 colors that is like one of the cube of 216 colors.
  private static func bright(_ color: UInt8) -> UInt8 {
    guard (16..<232).contains(color) else { return color < 16 ? color : 15 }
    let (red, green, blue) = ((color - 16) / 36, (color - 16) / 6 % 6, (color - 16) % 6)
    let isStrong = { (part: UInt8) in part > 2 }
    return 8 + (isStrong(red) ? 1 : 0) + (isStrong(green) ? 2 : 0) + (isStrong(blue) ? 4 : 0)
  }
}

extension ImageVariant {
  /// The badges of terminals with 16 colors.
  static let sixteenColors = ImageVariant("16 colors")
}

/// The badges of airlines, downloaded from the origin.
///
/// Concurrent requests for a badge share one download. The file is kept for later runs and decoded once, in the variant of
/// the terminal. If a badge is not available, the airline is shown without one.
struct Badges: Sendable {
  private let origin: String
  private let variant: ImageVariant?
  private let media: MediaLoader
  private let images: ImageLoader<Badge>

  /// Creates an empty collection of badges.
  ///
  /// - Parameters:
  ///   - origin: The address of the origin.
  ///   - folder: The folder for the files.
  ///   - variant: The variant of the terminal.
  init(origin: String, folder: URL, variant: ImageVariant? = nil) {
    self.origin = origin
    self.variant = variant
    // A row does not wait for an unavailable origin; the next row requests the badge again.
    let media = MediaLoader(directory: folder, byteLimit: 1 << 20, retry: .never)
    self.media = media
    images = ImageLoader(media: media) { data, response in
      try Badge(data, variant: response.variant)
    }
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
    var request = MediaRequest(url, cacheKey: path)
    request.variant = variant
    return try? await images.request(request)
  }
}
