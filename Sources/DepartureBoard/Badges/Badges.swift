import Foundation
import Plexus
import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The badges of airlines, downloaded from the origin.
///
/// Concurrent requests for a badge share one download. The image is kept as a file for later runs and decoded
/// once. If a badge is not available, the airline is shown without one.
final class Badges: Sendable {
  private let images: ImageLoader<Badge>
  private let transport: OriginTransport
  /// The folder to remove at the end, or `nil` if the files are kept.
  private let temporaryFolder: URL?

  /// Creates an empty collection of badges.
  ///
  /// - Parameters:
  ///   - origin: The address of the origin without a path.
  ///   - folder: The folder for the files, or `nil` for a temporary one.
  init(origin: String, folder: URL?) {
    transport = OriginTransport(to: origin)
    temporaryFolder = folder == nil ? Self.newTemporaryFolder : nil
    let media = MediaLoader(
      directory: folder ?? temporaryFolder,
      transport: transport,
      byteLimit: 1 << 20,
      // A row does not wait for an unavailable origin; the next row requests the badge again.
      retry: .never
    )
    images = ImageLoader(media: media) { data in Badge(try Pixmap(ppm: data)) }
  }

  deinit {
    removeTemporaryFiles()
  }

  /// Returns the badge of an airline.
  ///
  /// - Parameter carrier: The airline's code.
  /// - Returns: The badge, or `nil` if it is not available at present.
  func badge(of carrier: String) async -> Badge? {
    guard let url = OriginTransport.url(of: "/badges/\(carrier).ppm") else { return nil }
    // After a failure the next row asks again; what cannot be decoded is not downloaded again meanwhile.
    return try? await images.request(url)
  }

  /// The number of completed downloads.
  var downloadCount: Int {
    transport.answerCount
  }

  /// Removes the files if they are temporary.
  func removeTemporaryFiles() {
    guard let temporaryFolder else { return }
    try? FileManager.default.removeItem(at: temporaryFolder)
  }

  private static var newTemporaryFolder: URL {
    FileManager.default.temporaryDirectory.appending(
      path: "DepartureBoard-\(UInt64.random(in: 0...UInt64.max))",
      directoryHint: .isDirectory
    )
  }
}
