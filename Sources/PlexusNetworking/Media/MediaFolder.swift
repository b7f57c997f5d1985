internal import Foundation
internal import PlexusSupport

/// The folder of a loader: complete files with their records, and parts that may be continued.
///
/// A file is named after the SHA-256 digest of its key, with the path extension of the key; its record has the
/// same name. A part has the same digest, the validator that decides whether it still fits (the entity tag or
/// date, in hexadecimal digits), and a number of its own, which follows the announced length, if there is one, and the
/// place that it came from, if it was redirected. Only the owner has access: folders have the permissions 0700, files
/// 0600.
struct MediaFolder: Sendable {
  let root: URL
  /// The paths of the folders, each with a slash at its end.
  private let (filesPath, partsPath, recordsPath): (String, String, String)

  init(root: URL) {
    self.root = root
    let path = Self.path(of: root)
    (filesPath, partsPath, recordsPath) = (path + "/files/", path + "/parts/", path + "/records/")
  }

  private var files: URL { root.appending(path: "files", directoryHint: .isDirectory) }
  private var parts: URL { root.appending(path: "parts", directoryHint: .isDirectory) }
  private var records: URL { root.appending(path: "records", directoryHint: .isDirectory) }

  // MARK: - Names

  /// Returns the name of the file for a key.
  static func name(ofKey key: String) -> String {
    let suffix = pathExtension(of: key).lowercased()
    let isPlain = suffix.utf8.count <= 10 && suffix.utf8.allSatisfy(Self.isAlphanumeric)
    return SHA256.hexadecimalDigest(key.utf8) + (suffix.isEmpty || !isPlain ? "" : "." + suffix)
  }

  /// Returns the path extension of a URL or of any other text.
  private static func pathExtension(of key: String) -> Substring {
    var path = key.prefix { $0 != "?" && $0 != "#" }
    if let scheme = path.firstRange(of: "://") {
      path = path[scheme.upperBound...].drop { $0 != "/" }
    }
    let component = path.suffix(from: path.lastIndex(of: "/") ?? path.startIndex)
    guard let dot = component.lastIndex(of: ".") else { return "" }
    return component[component.index(after: dot)...]
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
  }

  private static func digest(of name: String) -> String { String(name.prefix(64)) }

  /// Returns the URL of the file of a name, whether it is there or not.
  func file(named name: String) -> URL {
    files.appending(path: name, directoryHint: .notDirectory)
  }

  /// Returns the path of a folder, which can also be that of a file in its place.
  static func path(of folder: URL) -> String {
    let path = folder.path(percentEncoded: false)
    return path.hasSuffix("/") ? String(path.dropLast()) : path
  }

  private func path(of name: String) -> String {
    filesPath + name
  }

  private func path(ofPart name: String) -> String {
    partsPath + name
  }

  private func path(ofRecord name: String) -> String {
    recordsPath + name
  }

  private func names(in folder: URL) -> [String] {
    names(in: Self.path(of: folder))
  }

  private func names(in folder: String) -> [String] {
    (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
  }

  // MARK: - Folders

  /// Creates missing folders; a file with the name of one is set aside.
  func make() throws {
    for folder in [root, files, parts, records] {
      do {
        try FileManager.default.createDirectory(
          at: folder,
          withIntermediateDirectories: true,
          attributes: [.posixPermissions: 0o700]
        )
      } catch {
        let path = Self.path(of: folder)
        guard folder != root, PartFile.properties(of: path) != nil else { throw error }
        try setAside(path)
        try FileManager.default.createDirectory(
          at: folder,
          withIntermediateDirectories: false,
          attributes: [.posixPermissions: 0o700]
        )
      }
    }
  }

  /// Sets all files aside, in one step for each folder.
  ///
  /// - Throws: A `POSIXError` if something is left.
  func setAside() throws {
    for folder in [files, parts, records] {
      do {
        try setAside(Self.path(of: folder))
      } catch let error as POSIXError where error.code == .ENOENT || error.code == .ENOTDIR {
        // There is nothing.
      }
    }
  }

  @discardableResult
  private func setAside(_ path: String) throws -> String {
    let number = String(UInt64.random(in: 0...UInt64.max), radix: 16)
    let aside = root.appending(path: "removed-\(number)", directoryHint: .notDirectory)
      .path(percentEncoded: false)
    try PartFile.move(path, to: aside)
    return aside
  }

  /// Removes what was set aside, also by a process that ended before it did so.
  func removeAside() throws {
    for name in names(in: root) where name.hasPrefix("removed-") {
      let folder = root.appending(path: name, directoryHint: .isDirectory)
      while true {
        do {
          try FileManager.default.removeItem(at: folder)
          break
        } catch {
          // Another loader may be removing it, too, and may have been faster with any of the files.
          let path = folder.path(percentEncoded: false)
          guard FileManager.default.fileExists(atPath: path) else { break }
          guard (error as? CocoaError)?.code == .fileNoSuchFile else { throw error }
        }
      }
    }
  }

  // MARK: - Files

  /// Returns the properties of the file of a name if it is there.
  func properties(of name: String) -> FileProperties? {
    PartFile.properties(of: path(of: name))
  }

  /// Notes that a file is used now, so that a later process knows, too.
  func touch(_ name: String, _ properties: FileProperties) {
    PartFile.touch(path(of: name), properties)
  }

  /// Whether a file or part is there.
  func has(_ name: String) -> Bool { length(of: name) != nil }

  /// Returns the length of a file or part if it is there.
  func length(of name: String) -> Int64? {
    PartFile.properties(of: Self.isPart(name) ? path(ofPart: name) : path(of: name))?.length
  }

  /// The complete files and the parts with their lengths, the least recently used first.
  func contents() -> [(name: String, length: Int64)] {
    let files = names(in: files).map { ($0, PartFile.properties(of: path(of: $0))) }
    let parts = names(in: parts).map { ($0, PartFile.properties(of: path(ofPart: $0))) }
    return (files + parts)
      .compactMap { name, properties in properties.map { (name, $0.length, $0.used) } }
      .sorted { $0.2 < $1.2 }
      .map { ($0.0, $0.1) }
  }

  /// Makes a part the complete file of a name, in one step; a folder in its place is set aside.
  ///
  /// - Throws: A `POSIXError`; `ENOENT` if the folder has been removed meanwhile. ``MediaError/cleared`` if another
  ///   process has removed the part.
  func complete(_ part: PartFile, named name: String) throws {
    let path = path(of: name)
    do {
      try part.move(to: path)
    } catch let error as POSIXError where error.code == .ENOENT || error.code == .ENOTDIR {
      // The system removes the folder, and a loader what is in it, which must not come back.
      if !PartFile.exists(part.path), PartFile.exists(Self.path(of: root)) {
        throw MediaError.cleared
      }
      try make()
      try part.move(to: path)
    } catch {
      guard PartFile.exists(path), PartFile.properties(of: path) == nil else { throw error }
      try setAside(path)
      try part.move(to: path)
      try? removeAside()
    }
  }

  /// Removes the file of a name with its record and its parts, also the part that a download is writing: its bytes must
  /// not be left if the process ends.
  ///
  /// - Returns: The names of the parts.
  /// - Throws: The system's error if the file is left.
  func remove(_ name: String) throws -> [String] {
    do {
      try FileManager.default.removeItem(atPath: path(of: name))
    } catch {
      if PartFile.exists(path(of: name)) { throw error }
    }
    removeRecord(of: name)
    return removeParts(of: name, evenIfWritten: true)
  }

  /// Removes one version of the file of a name with its record; another version stays.
  ///
  /// - Returns: Whether it was that version.
  func remove(_ name: String, _ version: FileVersion) -> Bool {
    let path = path(of: name)
    guard let properties = properties(of: name), properties.version == version,
      let aside = try? setAside(path)
    else { return false }
    // Another loader can have stored a newer file in between.
    guard PartFile.properties(of: aside)?.version == version else {
      PartFile.restore(aside, to: path)
      return false
    }
    PartFile.remove(aside)
    if record(of: name, version) != nil { removeRecord(of: name) }
    return true
  }

  /// Removes a file with its record, or a part that no download is writing, because of a limit.
  func evict(_ name: String) {
    if Self.isPart(name) {
      _ = removePart(name)
    } else {
      PartFile.remove(path(of: name))
      removeRecord(of: name)
    }
  }

  /// Whether a file is whole for certain.
  ///
  /// Files are not made durable one by one, which takes much longer than a download. If the power is cut, a file can
  /// be left without its last bytes, which its length shows. So a file from before the system was started must have
  /// the length and date of its record.
  func isIntact(_ name: String, _ properties: FileProperties) -> Bool {
    guard let bootTime = PartFile.bootTime else { return true }
    return properties.modified >= bootTime || record(of: name, properties.version) != nil
  }

  /// Removes the files that are not whole for certain.
  func removeDamagedFiles() {
    for name in names(in: files) {
      guard let properties = properties(of: name) else { continue }
      if !isIntact(name, properties), remove(name, properties.version) { removeRecord(of: name) }
    }
  }

  // MARK: - Records

  /// The largest number of bytes of a record; header fields are much shorter.
  private static let recordLimit: Int64 = 1 << 20

  /// Returns the record of a file if it is about this version.
  func record(of name: String, _ version: FileVersion) -> MediaRecord? {
    let path = path(ofRecord: name)
    // A pipe would be waited for, and a link can lead anywhere.
    guard let properties = PartFile.properties(of: path), properties.length <= Self.recordLimit,
      let data = try? Data(contentsOf: URL(filePath: path)),
      let record = try? JSONDecoder().decode(MediaRecord.self, from: data),
      record.version == version
    else { return nil }
    return record
  }

  /// Changes the record of a file, if there is one.
  ///
  /// - Parameters:
  ///   - name: The name of the file.
  ///   - version: Its version.
  ///   - creates: Whether a record that is missing is created.
  ///   - change: A closure that changes the record.
  /// - Returns: Whether this version is still the file of its name.
  func changeRecord(
    of name: String,
    _ version: FileVersion,
    creates: Bool = false,
    _ change: (inout MediaRecord) -> Void
  ) -> Bool {
    guard properties(of: name)?.version == version else { return false }
    let missing = creates ? MediaRecord(version: version, now: 0) { _ in nil } : nil
    if var record = record(of: name, version) ?? missing {
      change(&record)
      store(record, of: name)
    }
    return true
  }

  /// Stores a record in place of what is there.
  ///
  /// A record that cannot be stored, or is read by another process before it is complete, is done without.
  func store(_ record: MediaRecord, of name: String) {
    if let data = try? JSONEncoder().encode(record) { store(encodedRecord: data, of: name) }
  }

  /// Stores a record in place of what is there.
  func store(encodedRecord data: Data, of name: String) {
    let path = path(ofRecord: name)
    do {
      try PartFile.write(data, toNewFileAt: path)
    } catch let error as POSIXError where error.code == .EEXIST {
      try? replaceRecord(data, at: path)
    } catch {
      // The file is used without a record.
    }
  }

  /// Replaces a record in one step; a folder in its place is set aside.
  private func replaceRecord(_ data: Data, at path: String) throws {
    let number = String(UInt64.random(in: 0...UInt64.max), radix: 16)
    // A process that ends here leaves a record without a file, which a later one removes.
    let next = "\(path).\(number)"
    do {
      try PartFile.write(data, toNewFileAt: next)
      do {
        try PartFile.move(next, to: path)
      } catch let error as POSIXError where error.code == .EISDIR {
        try setAside(path)
        try PartFile.move(next, to: path)
        try? removeAside()
      }
    } catch {
      PartFile.remove(next)
      throw error
    }
  }

  private func removeRecord(of name: String) {
    PartFile.remove(path(ofRecord: name))
  }

  /// Removes the records whose files are gone.
  func removeOrphanedRecords() {
    for name in names(in: records) where properties(of: name) == nil { removeRecord(of: name) }
  }

  // MARK: - Parts

  /// The largest number of bytes of a validator in the name of a part, which has 255 bytes at most.
  static let validatorLimit = 70
  /// The number of digits of a location in the name of a part.
  static let locationLength = 8

  private static let partSuffix = ".part"

  /// Whether a name is that of a part: a file can have the same extension.
  static func isPart(_ name: String) -> Bool {
    name.hasSuffix(partSuffix) && name.utf8.count(where: { $0 == UInt8(ascii: ".") }) == 3
  }

  /// Returns the name of a part, by which it counts towards a limit.
  static func name(of part: PartFile) -> String {
    part.path.split(separator: "/").last.map(String.init) ?? part.path
  }

  /// Creates a part.
  ///
  /// - Parameters:
  ///   - name: The name of the file that it is a part of.
  ///   - content: What is to be written to it, with a validator of at most ``validatorLimit`` bytes.
  /// - Returns: The part, which is empty.
  /// - Throws: The system's error.
  func makePart(of name: String, _ content: HTTPPart) throws -> PartFile {
    let hexadecimal = content.validator.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
      .joined()
    let length = content.total.map { String($0, radix: 16) } ?? ""
    var failures = 0
    while true {
      let random = String(UInt64.random(in: 0...UInt64.max), radix: 16)
      let number = [length, content.location, random].joined(separator: "-")
      let part =
        [Self.digest(of: name), hexadecimal, number].joined(separator: ".") + Self.partSuffix
      do {
        // Another process may look through the parts in the moment before the new one is locked.
        if let file = try PartFile.creating(path(ofPart: part)) { return file }
      } catch let error as POSIXError
        where (error.code == .ENOENT || error.code == .ENOTDIR) && failures == 0
      {
        // The system, or another process, has cleaned up.
        failures += 1
        try make()
      }
    }
  }

  /// Opens the longest part of a file that can be continued and that no other download is writing; its other
  /// parts are removed unless they are being written.
  ///
  /// - Parameters:
  ///   - name: The name of the file.
  ///   - removed: Called with the name of each part that was removed.
  /// - Returns: The part and what continues it; `nil` if there is none.
  func openPart(
    of name: String,
    removed: (String) -> Void
  ) -> (file: PartFile, part: HTTPPart)? {
    let prefix = Self.digest(of: name) + "."
    var best: (file: PartFile, part: HTTPPart)?
    for name in names(in: partsPath) where name.hasPrefix(prefix) {
      guard let file = PartFile.opening(path(ofPart: name)) else { continue }
      guard var part = Self.part(named: name), file.size > best?.part.length ?? 0 else {
        file.remove()
        removed(name)
        continue
      }
      if let other = best?.file {
        other.remove()
        removed(Self.name(of: other))
      }
      part.length = file.size
      best = (file, part)
    }
    return best
  }

  /// Removes the parts of a file.
  ///
  /// - Parameters:
  ///   - name: The name of the file.
  ///   - evenIfWritten: Whether parts that a download is writing are removed, too; it notices that in the end.
  /// - Returns: Their names.
  func removeParts(of name: String, evenIfWritten: Bool = false) -> [String] {
    let prefix = Self.digest(of: name) + "."
    return names(in: parts).filter { part in
      guard part.hasPrefix(prefix) else { return false }
      guard evenIfWritten else { return removePart(part) }
      PartFile.remove(path(ofPart: part))
      return true
    }
  }

  /// Removes a part that no download is writing, and that was last written before a time in nanoseconds since
  /// 1970-01-01T00:00Z.
  private func removePart(_ name: String, before limit: Int64 = .max) -> Bool {
    // A download can have continued the part until it was opened.
    guard let part = PartFile.opening(path(ofPart: name)),
      part.properties.map({ $0.modified < limit }) ?? true
    else { return false }
    part.remove()
    return true
  }

  /// Removes the parts that were last written before a date and that no download is writing.
  ///
  /// - Returns: Their names.
  @discardableResult
  func removeParts(before date: Date) -> [String] {
    let limit = Int64(date.timeIntervalSince1970 * 1e9)
    return names(in: parts).filter { name in
      guard let properties = PartFile.properties(of: path(ofPart: name)) else { return false }
      return properties.modified < limit && removePart(name, before: limit)
    }
  }

  private static func part(named name: String) -> HTTPPart? {
    let pieces = name.split(separator: ".", omittingEmptySubsequences: false)
    guard pieces.count == 4, !pieces[1].isEmpty else { return nil }
    let digits = Array(pieces[1].utf8)
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count - 1, by: 2) {
      guard let byte = UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(byte)
    }
    // Earlier versions wrote the number alone, or after the length.
    let number = pieces[2].split(separator: "-", omittingEmptySubsequences: false)
    return HTTPPart(
      validator: String(decoding: bytes, as: UTF8.self),
      location: number.count == 3 ? String(number[1]) : "",
      total: number.count > 1 ? Int64(number[0], radix: 16) : nil
    )
  }
}
