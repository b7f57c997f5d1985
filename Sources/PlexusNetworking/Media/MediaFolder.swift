internal import Foundation
internal import PlexusSupport

/// The folder of a loader: complete files, and parts that may be continued.
///
/// A file has the SHA-256 digest of its URL as its name, with the extension of the URL. A part has the same
/// digest, what tells whether it still fits (the entity tag or date, in hexadecimal digits), and a number of
/// its own. Everything is only for the owner: folders 0700, files 0600.
struct MediaFolder: Sendable {
  let root: URL

  private var files: URL { root.appending(path: "files", directoryHint: .isDirectory) }
  private var parts: URL { root.appending(path: "parts", directoryHint: .isDirectory) }

  /// Returns the name of the file for a URL.
  static func name(of url: URL) -> String {
    let suffix = url.pathExtension.lowercased()
    let isPlain = suffix.utf8.count <= 10 && suffix.utf8.allSatisfy(Self.isAlphanumeric)
    return digest(of: url) + (suffix.isEmpty || !isPlain ? "" : "." + suffix)
  }

  /// Returns where the file for a URL is, or would be.
  func file(for url: URL) -> URL {
    files.appending(path: Self.name(of: url), directoryHint: .notDirectory)
  }

  /// Returns the length of the file at a path; `nil` if there is none.
  static func length(of file: URL) -> Int64? {
    PartFile.length(of: file.path(percentEncoded: false), followsLinks: false)
  }

  /// How long what tells whether a part fits may be: a name has 255 bytes at most.
  static let validatorLimit = 80

  /// Makes the folders that are missing.
  func make() throws {
    for folder in [root, files, parts] {
      try FileManager.default.createDirectory(
        at: folder,
        withIntermediateDirectories: true,
        attributes: [.posixPermissions: 0o700]
      )
    }
  }

  /// Creates a part.
  ///
  /// - Parameters:
  ///   - url: What it is a part of.
  ///   - validator: What tells whether it still fits, of at most ``validatorLimit`` bytes; empty if nothing
  ///     does.
  /// - Returns: The file, which is empty.
  /// - Throws: The system's error.
  func makePart(of url: URL, validator: String) throws -> PartFile {
    let hexadecimal = validator.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    let digest = Self.digest(of: url)
    var failures = 0
    while true {
      let number = String(UInt64.random(in: 0...UInt64.max), radix: 16)
      let name = [digest, hexadecimal, number, "part"].joined(separator: ".")
      do {
        // Another process may look through the parts in the moment before the new one is locked.
        if let part = try PartFile.creating(path(ofPart: name)) { return part }
      } catch let error as POSIXError where error.code == .ENOENT && failures == 0 {
        // The system, or somebody else, has cleaned up.
        failures += 1
        try make()
      }
    }
  }

  /// Opens the longest part of a URL that nobody is writing and that can be continued; others that nobody is
  /// writing are removed.
  func openPart(of url: URL) -> (file: PartFile, validator: String)? {
    let prefix = Self.digest(of: url) + "."
    var best: (file: PartFile, validator: String)?
    for name in names(in: parts) where name.hasPrefix(prefix) {
      guard let file = PartFile.opening(path(ofPart: name)) else { continue }
      guard let validator = Self.validator(ofPart: name), file.size > best?.file.size ?? 0 else {
        file.remove()
        continue
      }
      best?.file.remove()
      best = (file, validator)
    }
    return best
  }

  /// Removes the parts that nobody has written since a date and nobody is writing.
  func removeParts(before date: Date) {
    for name in names(in: parts) {
      let path = path(ofPart: name)
      let attributes = try? FileManager.default.attributesOfItem(atPath: path)
      guard let modified = attributes?[.modificationDate] as? Date, modified < date else {
        continue
      }
      PartFile.opening(path)?.remove()
    }
  }

  /// The complete files with their lengths, those first that were written first.
  func contents() -> [(name: String, length: Int64)] {
    names(in: files).compactMap { name -> (String, Int64, Date)? in
      let path = files.appending(path: name).path(percentEncoded: false)
      let attributes = try? FileManager.default.attributesOfItem(atPath: path)
      guard let length = (attributes?[.size] as? NSNumber)?.int64Value else { return nil }
      return (name, length, attributes?[.modificationDate] as? Date ?? .distantPast)
    }
    .sorted { $0.2 < $1.2 }
    .map { ($0.0, $0.1) }
  }

  /// Returns where the file of a name is.
  func file(named name: String) -> URL {
    files.appending(path: name, directoryHint: .notDirectory)
  }

  /// Makes a complete file of a part, in one step.
  ///
  /// - Throws: A `POSIXError`; `ENOENT` if the part has been removed meanwhile.
  func complete(_ part: PartFile, for url: URL) throws {
    let path = file(for: url).path(percentEncoded: false)
    do {
      try part.move(to: path)
    } catch let error as POSIXError where error.code == .ENOENT {
      try make()
      try part.move(to: path)
    }
  }

  /// Sets everything that is there aside, in one step for files and one for parts.
  ///
  /// - Throws: A `POSIXError` if something is left.
  func setAside() throws {
    for folder in [files, parts] {
      let number = String(UInt64.random(in: 0...UInt64.max), radix: 16)
      let aside = root.appending(path: "removed-\(number)", directoryHint: .notDirectory)
      do {
        try PartFile.move(
          folder.path(percentEncoded: false),
          to: aside.path(percentEncoded: false)
        )
      } catch let error as POSIXError where error.code == .ENOENT {
        // There is nothing.
      }
    }
  }

  /// Removes what was set aside, also by a process that did not come to it.
  func removeAside() throws {
    for name in names(in: root) where name.hasPrefix("removed-") {
      let folder = root.appending(path: name, directoryHint: .isDirectory)
      while true {
        do {
          try FileManager.default.removeItem(at: folder)
          break
        } catch {
          // Another loader may be at it, too: what one has found the other has removed.
          let path = folder.path(percentEncoded: false)
          guard FileManager.default.fileExists(atPath: path) else { break }
          guard (error as? CocoaError)?.code == .fileNoSuchFile else { throw error }
        }
      }
    }
  }

  private func names(in folder: URL) -> [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: folder.path(percentEncoded: false))) ?? []
  }

  private func path(ofPart name: String) -> String {
    parts.appending(path: name, directoryHint: .notDirectory).path(percentEncoded: false)
  }

  private static func validator(ofPart name: String) -> String? {
    let pieces = name.split(separator: ".", omittingEmptySubsequences: false)
    guard pieces.count == 4, !pieces[1].isEmpty else { return nil }
    let digits = Array(pieces[1].utf8)
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count - 1, by: 2) {
      guard let byte = UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(byte)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func digest(of url: URL) -> String {
    SHA256.hexadecimalDigest(url.absoluteString.utf8)
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
  }
}
