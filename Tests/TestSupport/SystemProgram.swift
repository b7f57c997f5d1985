import Foundation

/// The programs of this machine that tests start.
public enum SystemProgram: Sendable {
  /// Returns the path of the first of some programs that this machine has, if it has one.
  ///
  /// - Parameters:
  ///   - names: The names of the programs.
  ///   - folders: The folders to look in after those of `PATH`.
  public static func path(of names: String..., alsoIn folders: [String] = []) -> String? {
    let path = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    return (path.map(String.init) + folders)
      .flatMap { folder in names.map { "\(folder)/\($0)" } }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}
