import Foundation
import Plexus
import PlexusNetworking

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// The badges of airlines, which the origin draws.
///
/// Each is downloaded once, however many rows want it at the same time, kept as a file where the next start
/// finds it, and decoded once. An airline whose badge cannot be had goes without.
final class Badges: Sendable {
  private let images: ImageLoader<Badge>
  private let transport: OriginTransport
  /// The folder to remove in the end; `nil` if what is in it is to be kept.
  private let temporaryFolder: URL?

  /// Creates badges that are not there yet.
  ///
  /// - Parameters:
  ///   - origin: The address of what draws them, without a path.
  ///   - folder: Where they outlive the program; `nil` for nowhere.
  init(origin: String, folder: URL?) {
    transport = OriginTransport(to: origin)
    temporaryFolder = folder == nil ? Self.newTemporaryFolder : nil
    let media = MediaLoader(
      directory: folder ?? temporaryFolder,
      transport: transport,
      byteLimit: 1 << 20,
      // Whoever shows a row does not wait for an origin that is away: the next row asks again.
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
  /// - Returns: The badge; `nil` if it cannot be had now.
  func badge(of carrier: String) async -> Badge? {
    guard let url = OriginTransport.url(of: "/badges/\(carrier).ppm") else { return nil }
    // After a failure the next row asks again; what cannot be decoded is not downloaded again meanwhile.
    return try? await images.request(url)
  }

  /// The downloads that have come to their end.
  var downloadCount: Int {
    transport.answerCount
  }

  /// Removes what is not to outlive the program.
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
