internal import Foundation
internal import Plexus

/// The files of a loader in one folder, within its limit.
final class MediaStore: Sendable {
  /// An existing file.
  struct PinnedFile: Sendable {
    let file: URL
    let properties: FileProperties
    /// The store of the file; `nil` if it is used in place.
    let store: MediaStore?
    /// The pin that keeps the file there, if there is a limit.
    let pin: FilePin?
  }

  let folder: MediaFolder
  private let limit: DiskLimit?
  /// The work to do once, before the first file is looked for or stored.
  private let preparation: Multiplexer<Bool>
  /// The work to do again from time to time.
  private let sweep: Multiplexer<Bool>

  /// Creates a store.
  ///
  /// - Parameters:
  ///   - folder: The folder, made when it is needed.
  ///   - byteLimit: The bytes of files and parts; `nil` for any number.
  ///   - clock: The clock that tells when to sweep.
  init(folder: MediaFolder, byteLimit: Int?, clock: any Clock<Duration>) {
    let limit = byteLimit.map { DiskLimit(bytes: $0, folder: folder) }
    self.folder = folder
    self.limit = limit
    var policy = CachePolicy()
    policy.timeToLive = .seconds(1_000_000_000)
    preparation = Multiplexer(id: "MediaStore", policy: policy) {
      folder.removeParts(before: Self.oldestPart)
      folder.removeDamagedFiles()
      folder.removeOrphanedRecords()
      limit?.reconcile()
      try? folder.removeAside()
      return true
    }
    policy.timeToLive = Self.sweepInterval
    sweep = Multiplexer(id: "MediaStore sweep", policy: policy, clock: clock) {
      for part in folder.removeParts(before: Self.oldestPart) { limit?.remove(part) }
      folder.removeOrphanedRecords()
      limit?.reconcile()
      return true
    }
  }

  /// The seconds after which a part is removed that no download continues.
  private static let partLifetime: TimeInterval = 86_400
  private static let sweepInterval = Duration.seconds(3600)
  private static var oldestPart: Date { Date(timeIntervalSinceNow: -partLifetime) }

  /// Counts the files of earlier processes, and removes damaged and outdated ones.
  func prepare() async {
    if preparation.cachedValue == nil { _ = try? await preparation.request() }
  }

  /// Removes parts that no download has continued for a day, at most once an hour.
  func sweepParts() async {
    await prepare()
    _ = try? await sweep.request()
  }

  /// Returns the file of a name if it is there.
  func file(_ name: String) -> URL? {
    properties(of: name) == nil ? nil : folder.file(named: name)
  }

  /// Returns the properties of the file of a name if it is there and whole.
  private func properties(of name: String) -> FileProperties? {
    guard let properties = folder.properties(of: name),
      preparation.cachedValue != nil || folder.isIntact(name, properties)
    else { return nil }
    return properties
  }

  /// Returns the file of a name if it is there, and keeps it there.
  func pinned(_ name: String) async -> PinnedFile? {
    var pin: FilePin?
    if let limit {
      await prepare()
      pin = await limit.pin(name)
      guard let properties = properties(of: name) else {
        limit.removeMissing(name)
        return nil
      }
      // Another process may have stored it, also in place of the file that counts.
      if pin?.length != Int(clamping: properties.length) {
        pin = limit.insert(name, length: Int(clamping: properties.length))
      }
    }
    // It may have been removed until it was pinned.
    guard let properties = properties(of: name) else {
      limit?.removeMissing(name)
      return nil
    }
    folder.touch(name, properties)
    return PinnedFile(
      file: folder.file(named: name),
      properties: properties,
      store: self,
      pin: pin
    )
  }

  /// Makes a part the file of a name, and keeps it there.
  ///
  /// The file counts towards the limit only after ``list(_:)``.
  ///
  /// - Parameters:
  ///   - part: The part, which is complete.
  ///   - name: The name of the file.
  ///   - properties: The properties of the part.
  /// - Returns: The file.
  /// - Throws: A `POSIXError`; `ENOENT` if the part has been removed meanwhile.
  func complete(
    _ part: PartFile,
    named name: String,
    _ properties: FileProperties
  ) throws -> PinnedFile {
    var pin: FilePin?
    if let limit {
      (pin, _) = try limit.pin(name) {
        try folder.complete(part, named: name)
        return properties
      }
    } else {
      try folder.complete(part, named: name)
    }
    return PinnedFile(
      file: folder.file(named: name),
      properties: properties,
      store: self,
      pin: pin
    )
  }

  /// Counts a file that is complete.
  func list(_ file: PinnedFile) {
    if let pin = file.pin { limit?.list(pin) }
  }

  /// Removes one version of a file; another version stays.
  ///
  /// - Returns: Whether it was that version.
  func remove(_ name: String, _ version: FileVersion) -> Bool {
    guard folder.remove(name, version) else { return false }
    release(name)
    return true
  }

  /// Whether a file of this store is still there.
  func has(_ name: String) -> Bool { folder.properties(of: name) != nil }

  /// Counts a part that is written, or that has been left, for so many bytes.
  ///
  /// - Returns: What keeps the limit from removing it.
  func reserve(_ part: PartFile, bytes: Int64) -> FilePin? {
    limit?.insert(MediaFolder.name(of: part), length: Int(clamping: bytes), isHandedOut: false)
  }

  /// Ends counting a part that is gone.
  func release(_ part: PartFile) {
    release(MediaFolder.name(of: part))
  }

  /// Ends counting a file or part that is gone.
  func release(_ name: String) {
    limit?.remove(name)
  }

  /// The names of the files and parts that count towards the limit.
  var countedNames: [String] { limit?.countedNames ?? [] }

  /// The files and parts that count, and the bytes that they count for.
  var countedLengths: [String: Int] { limit?.countedLengths ?? [:] }

  /// Ends counting everything.
  func releaseAll() {
    limit?.removeAll()
  }
}

/// The limits of a ``MediaLoader``.
struct MediaLimits: Sendable {
  let byteLimit: Int?
  let maximumFileBytes: Int?
  let connectionsPerHost: Int
}
