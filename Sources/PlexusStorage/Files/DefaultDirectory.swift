#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Returns the path of the default directory.
///
/// It is a folder named after the program in the user's caches directory.
func defaultDirectoryPath() -> String {
  let process = ProcessInfo.processInfo
  return path(of: cachesDirectory(process)) + "/\(process.processName)/plexus"
}

/// Returns the absolute path of a file URL without a trailing slash.
func path(of directory: URL) -> String {
  precondition(directory.isFileURL, "A cacher's directory must be a file URL")
  var path = directory.absoluteURL.standardizedFileURL.path(percentEncoded: false)
  while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
  return path
}

private func cachesDirectory(_ process: ProcessInfo) -> URL {
  #if canImport(Darwin)
  return .cachesDirectory
  #else
  // The XDG Base Directory Specification requires relative paths to be ignored.
  if let path = absolutePath(process.environment["XDG_CACHE_HOME"]) { return path }
  let home = absolutePath(process.environment["HOME"])
  return (home ?? FileManager.default.homeDirectoryForCurrentUser)
    .appending(path: ".cache", directoryHint: .isDirectory)
  #endif
}

private func absolutePath(_ text: String?) -> URL? {
  guard let text, text.hasPrefix("/") else { return nil }
  return URL(filePath: text, directoryHint: .isDirectory)
}
