internal import Foundation
internal import PlexusSupport

/// The removals and downloads of a folder, which all its loaders in this process share.
///
/// Files take their places and are removed with its lock, so that a download of one loader does not bring back what
/// another one has removed.
struct MediaClearing: Sendable {
  private struct Reference: Sendable {
    weak let clearing: Locked<MediaClearing>?
  }

  private static let all = Locked<[String: Reference]>([:])

  var revisions = MediaRevisions()
  /// Whether there are files that could not be set aside, and must not be used.
  var isIncomplete = false

  private init() {}

  /// Returns the removals and downloads of a folder, for as long as a loader has them.
  static func of(_ folder: MediaFolder) -> Locked<MediaClearing> {
    let path = MediaFolder.path(of: folder.root.standardizedFileURL)
    return all.withLock { all in
      if let clearing = all[path]?.clearing { return clearing }
      all = all.filter { $0.value.clearing != nil }
      let clearing = Locked(MediaClearing())
      all[path] = Reference(clearing: clearing)
      return clearing
    }
  }
}
