internal import Foundation
internal import Plexus
internal import PlexusSupport

/// The limit of the bytes of a folder.
///
/// A map with a capacity by cost decides, as it would in memory: its values are pins of the files. A file is removed
/// when it has been evicted from the map and no ``FilePin`` of it is left, so that no file in use is removed.
///
/// Others change the folder, too. Before files have to make room, the limit looks whether the counted files exist.
final class DiskLimit: Sendable {
  private struct Missing: Error {}

  private let map: MultiplexerMap<String, FilePin>
  /// The last files that were returned: their callers have a moment to open them.
  private let recent = Locked<[FilePin]>([])
  private let pins: FilePin.Registry
  private let bytes: Int
  private let folder: MediaFolder
  /// The files to look at next.
  private let unseen = Locked<[String]>([])

  /// The number of files that were returned last and are not removed.
  static let recentCount = 8
  /// The number of files that are looked at before others have to go.
  private static let sampleCount = 64

  init(bytes: Int, folder: MediaFolder) {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(1_000_000_000)
    self.bytes = bytes
    self.folder = folder
    pins = FilePin.Registry(folder: folder)
    map = MultiplexerMap(
      policy: policy,
      capacity: .cost(bytes) { $0.length },
      onKeyFetch: { _ in throw Missing() }
    )
  }

  deinit {
    // The files outlive the loader.
    pins.close()
  }

  /// Counts a file or part from now on; others may have to go.
  ///
  /// - Parameters:
  ///   - name: The name of the file or part.
  ///   - length: The number of its bytes, which replaces an earlier one.
  ///   - isHandedOut: Whether a caller is about to open it.
  /// - Returns: A pin of it.
  @discardableResult
  func insert(_ name: String, length: Int, isHandedOut: Bool = true) -> FilePin {
    let generation = pins.register(name, length: length)
    let pin = FilePin(name, length: length, in: pins, generation: generation)
    if isHandedOut { use(pin) }
    reconcileIfFull()
    map.store(pin, for: name)
    return pin
  }

  /// Stores a file, and pins it before it can be evicted.
  ///
  /// The file counts only after ``list(_:)``.
  ///
  /// - Parameters:
  ///   - name: The name of the file.
  ///   - store: The closure that stores the file, and returns its properties.
  /// - Returns: The pin and the properties.
  /// - Throws: The error of the closure.
  func pin(
    _ name: String,
    storing store: () throws -> FileProperties
  ) throws -> (FilePin, FileProperties) {
    let generation = pins.expect(name)
    do {
      let properties = try store()
      let length = Int(clamping: properties.length)
      pins.arrive(name, generation, length: length)
      return (FilePin(name, length: length, in: pins, generation: generation), properties)
    } catch {
      pins.withdraw(name, generation)
      throw error
    }
  }

  /// Counts a file that is pinned; others may have to go.
  func list(_ pin: FilePin) {
    use(pin)
    reconcileIfFull()
    map.store(pin, for: pin.name)
  }

  /// Returns a pin of a requested file; `nil` if it is not known.
  func pin(_ name: String) async -> FilePin? {
    // Asking the map is what makes the file stay longer. A key that it does not have would start a fetch.
    guard map.cachedValue(name) != nil, let pin = try? await map.request(name) else { return nil }
    use(pin)
    return pin
  }

  /// Ends counting a file or part that has been removed.
  func remove(_ name: String) {
    if let generation = pins.forget(name) { drop(name, generation) }
  }

  /// Ends counting a file or part if others have removed it.
  func removeMissing(_ name: String) {
    if let generation = pins.forgetMissing(name) { drop(name, generation) }
  }

  /// Everything has been removed.
  func removeAll() {
    pins.forget()
    map.clearMemory()
    let released = recent.withLock { recent in
      defer { recent = [] }
      return recent
    }
    withExtendedLifetime(released) {}
  }

  /// The names of the files and parts that count.
  var countedNames: [String] { map.keys }

  /// The files and parts that count, and the bytes that they count for.
  var countedLengths: [String: Int] { pins.lengths }

  /// Counts what is in the folder: others have added, removed or replaced files.
  func reconcile() {
    let contents = folder.contents()
    let found = Set(contents.map(\.name))
    for name in pins.lengths.keys where !found.contains(name) { removeMissing(name) }
    for (name, length) in contents {
      let length = Int(clamping: length)
      if let generation = pins.adopt(name, length: length) {
        map.store(FilePin(name, length: length, in: pins, generation: generation), for: name)
      } else if !MediaFolder.isPart(name), pins.length(of: name).map({ $0 != length }) == true {
        let generation = pins.register(name, length: length)
        map.store(FilePin(name, length: length, in: pins, generation: generation), for: name)
      }
    }
  }

  /// Looks whether files are there, if files may have to go: a few of many, and all of them once one is missing.
  private func reconcileIfFull() {
    guard pins.bytes > Int64(bytes) / 2 else { return }
    let sample = unseen.withLock { unseen -> [String]? in
      if unseen.isEmpty { unseen = map.keys }
      guard unseen.count > Self.sampleCount else {
        defer { unseen = [] }
        return map.count > Self.sampleCount ? unseen : nil
      }
      defer { unseen.removeLast(Self.sampleCount) }
      return Array(unseen.suffix(Self.sampleCount))
    }
    if sample?.allSatisfy({ folder.has($0) || pins.length(of: $0) == nil }) != true { reconcile() }
  }

  /// Releases the pins of a file that is gone.
  private func drop(_ name: String, _ generation: Int) {
    let released = recent.withLock { recent in
      let released = recent.filter { $0.name == name && $0.generation == generation }
      recent.removeAll { $0.name == name && $0.generation == generation }
      return released
    }
    withExtendedLifetime(released) {}
    if map.cachedValue(name)?.generation == generation { map.clearMemory(name) }
  }

  private func use(_ pin: FilePin) {
    let released = recent.withLock { recent -> [FilePin] in
      if let index = recent.firstIndex(where: { $0 === pin }) { recent.remove(at: index) }
      recent.append(pin)
      guard recent.count > Self.recentCount else { return [] }
      return [recent.removeFirst()]
    }
    withExtendedLifetime(released) {}
  }
}
