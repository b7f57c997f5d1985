import Foundation
import Plexus
import PlexusStorage

/// The kinds of cachers that tests open, also in other processes.
enum CacherKind: String, CaseIterable, Codable, Sendable {
  case files, log

  func open(_ path: String) throws -> any Cacher<Person> {
    let url = URL(filePath: path, directoryHint: .isDirectory)
    return switch self {
    case .files: JSONFileCacher<Person>(directory: url)
    case .log: try JSONLogCacher<Person>(directory: url)
    }
  }
}

/// The error of a fetch that a stored copy makes unnecessary.
struct Fetched: Error {}
