import Foundation
import Plexus
import PlexusTesting

/// The origin of the values, which the processes of a test share: files of a folder.
///
/// | File | Content |
/// |---|---|
/// | `origin` | the value of all keys, or the name of an error |
/// | `fetches` | a line for each fetch |
/// | `hold` | while it exists, fetches and handlers that begin hang until they are admitted |
struct Origin: Sendable {
  /// An error of the origin.
  enum Failure: String, ConnectivityFailure, OriginFailure {
    /// The origin cannot be reached.
    case offline
    /// The origin has no such value.
    case missing

    var isConnectivityFailure: Bool { self == .offline }
    var isOriginFailure: Bool { self == .offline }
  }

  let folder: URL
  /// The schema of the values, which they contain unless it is the first.
  let schema: String
  private let gate = Gate()

  /// Returns the value of the time of the call.
  func fetch() async throws -> String {
    try note("\(ProcessInfo.processInfo.processIdentifier)\n")
    let content = try String(contentsOf: file("origin"), encoding: .utf8)
    if isHeld {
      SharedNodeProgram.answer("fetching")
      try await gate.wait()
    }
    if let failure = Failure(rawValue: content) { throw failure }
    return schema == "1" ? content : "\(content) in schema \(schema)"
  }

  /// Whether fetches and handlers hang that begin now.
  var isHeld: Bool { FileManager.default.fileExists(atPath: file("hold").path) }

  /// Hangs until it is admitted.
  func wait() async throws {
    try await gate.wait()
  }

  /// Lets one fetch or handler that hangs continue.
  func admit() {
    gate.admit(1)
  }

  private func note(_ line: String) throws {
    let handle = try FileHandle(forWritingTo: file("fetches"))
    defer { try? handle.close() }
    try handle.seekToEnd()
    try handle.write(contentsOf: Data(line.utf8))
  }

  private func file(_ name: String) -> URL { folder.appending(path: name) }
}
