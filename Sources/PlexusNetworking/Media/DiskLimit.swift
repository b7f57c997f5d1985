internal import Foundation
internal import Plexus
internal import PlexusSupport

/// The limit of the bytes of a folder.
///
/// A map with a capacity by cost decides, as it would in memory: its values are pins of the files. A file is removed
/// when it has been evicted from the map and no ``FilePin`` of it is left, so that no file in use is removed.
final class DiskLimit: Sendable {
  private struct Missing: Error {}

  private let map: MultiplexerMap<String, FilePin>
  /// The last files that were returned: their callers have a moment to open them.
  private let recent = Locked<[FilePin]>([])
  private let pins: FilePin.Registry

  /// The number of files that were returned last and are not removed.
  static let recentCount = 8

  init(bytes: Int, folder: MediaFolder) {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(1_000_000_000)
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
    let pin = FilePin(name, length: length, in: pins, era: pins.register(name))
    if isHandedOut { use(pin) }
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
    let era = pins.register(name)
    do {
      let properties = try store()
      let length = Int(clamping: properties.length)
      return (FilePin(name, length: length, in: pins, era: era), properties)
    } catch {
      pins.withdraw(name, era)
      throw error
    }
  }

  /// Counts a file that is pinned; others may have to go.
  func list(_ pin: FilePin) {
    use(pin)
    map.store(pin, for: pin.name)
  }

  /// Returns a pin of a requested file; `nil` if it is not known.
  func pin(_ name: String) async -> FilePin? {
    // Asking the map is what makes the file stay longer. A key that it does not have would start a fetch.
    guard map.cachedValue(name) != nil, let pin = try? await map.request(name) else { return nil }
    use(pin)
    return pin
  }

  /// Ends counting a part that is gone.
  func removePart(_ name: String) {
    pins.forget(name)
    map.clearMemory(name)
  }

  /// Ends counting a file that has been removed.
  func remove(_ name: String) {
    let released = recent.withLock { recent in
      let index = recent.firstIndex { $0.name == name }
      return index.map { recent.remove(at: $0) }
    }
    withExtendedLifetime(released) {}
    map.clearMemory(name)
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
