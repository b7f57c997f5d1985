import Foundation
import Plexus
import PlexusStorage

/// The filter of a screen, which is kept for the next run.
struct SavedFilter: Sendable {
  private static let key = "filter"
  private let cacher: any Cacher<String>

  /// Creates the file of the filter, unless it exists.
  ///
  /// - Parameter folder: The folder of the file.
  /// - Throws: A `StorageError` if the folder cannot be used.
  init(folder: URL) throws {
    cacher = try JSONLogCacher<String>(directory: folder, byteLimit: 4_096, schema: "filter 1")
  }

  /// The filter in effect at the end of the last run; empty if there is none.
  var last: String {
    get async { (try? await cacher.entry(forKey: Self.key))?.value ?? "" }
  }

  /// Saves the filter of a page whenever it takes effect, until the result is released.
  func follow(_ page: BoardPage) -> SavedState {
    page.select { $0.page.text }.persist(in: cacher, as: Self.key)
  }
}
