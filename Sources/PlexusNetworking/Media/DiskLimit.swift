internal import Foundation
internal import Plexus
internal import PlexusSupport

/// The limit of the bytes of a folder.
///
/// A map with a capacity by cost decides, as it would in memory: its values are holds on the files, and the last
/// hold on a file that the map has evicted removes the file when it is released. So a file goes when it is
/// evicted and not in use.
final class DiskLimit: Sendable {
  /// A hold on a file: while one exists, the limit does not remove the file.
  final class Hold: Sendable {
    fileprivate let length: Int
    fileprivate let name: String
    private let era: Int
    private let names: Names

    fileprivate init(_ name: String, length: Int, names: Names, era: Int) {
      self.length = length
      self.name = name
      self.names = names
      self.era = era
    }

    deinit {
      names.release(name, era)
    }
  }

  /// The number of holds on each file: the last one removes the file.
  ///
  /// A file that was evicted while it is used, and is requested again, has several.
  fileprivate final class Names: Sendable {
    private struct State: Sendable {
      var counts: [String: Int] = [:]
      /// The number of times that everything was forgotten.
      var era = 0
      var isOpen = true
    }

    private let folder: MediaFolder
    private let state = Locked(State())

    init(folder: MediaFolder) {
      self.folder = folder
    }

    /// Registers a hold.
    ///
    /// - Returns: The era that the hold belongs to.
    func register(_ name: String) -> Int {
      state.withLock { state in
        state.counts[name, default: 0] += 1
        return state.era
      }
    }

    /// A hold has ended; the last one removes the file.
    func release(_ name: String, _ era: Int) {
      state.withLock { state in
        guard state.isOpen, state.era == era, let count = state.counts[name] else { return }
        state.counts[name] = count > 1 ? count - 1 : nil
        // With the lock, so that no hold is taken in between.
        if count == 1 { folder.evict(name) }
      }
    }

    /// Takes back a registration without removing the file.
    func withdraw(_ name: String, _ era: Int) {
      state.withLock { state in
        guard state.era == era, let count = state.counts[name] else { return }
        state.counts[name] = count > 1 ? count - 1 : nil
      }
    }

    /// Ends the holds on a part that is gone, whose name is not used again.
    func forget(_ part: String) {
      state.withLock { $0.counts[part] = nil }
    }

    /// No hold of now removes anything.
    func forget() {
      state.withLock { state in
        state.counts = [:]
        state.era += 1
      }
    }

    /// No hold removes anything from now on.
    func close() {
      state.withLock { $0.isOpen = false }
    }
  }

  private struct Missing: Error {}

  private let map: MultiplexerMap<String, Hold>
  /// The last files that were returned: their callers have a moment to open them.
  private let recent = Locked<[Hold]>([])
  private let names: Names

  /// The number of files that were returned last and are not removed.
  static let recentCount = 8

  init(bytes: Int, folder: MediaFolder) {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(1_000_000_000)
    names = Names(folder: folder)
    map = MultiplexerMap(
      policy: policy,
      capacity: .cost(bytes) { $0.length },
      onKeyFetch: { _ in throw Missing() }
    )
  }

  deinit {
    // The files outlive the loader.
    names.close()
  }

  /// Counts a file or part from now on; others may have to go.
  ///
  /// - Parameters:
  ///   - name: The name of the file or part.
  ///   - length: The number of its bytes, which replaces an earlier one.
  ///   - isHandedOut: Whether a caller is about to open it.
  /// - Returns: A hold on it.
  @discardableResult
  func insert(_ name: String, length: Int, isHandedOut: Bool = true) -> Hold {
    let hold = Hold(name, length: length, names: names, era: names.register(name))
    if isHandedOut { use(hold) }
    map.store(hold, for: name)
    return hold
  }

  /// Stores a file, and holds it before it can be evicted.
  ///
  /// The file counts only after ``list(_:)``.
  ///
  /// - Parameters:
  ///   - name: The name of the file.
  ///   - store: The closure that stores the file, and returns its properties.
  /// - Returns: The hold and the properties.
  /// - Throws: The error of the closure.
  func hold(
    _ name: String,
    storing store: () throws -> FileProperties
  ) throws -> (Hold, FileProperties) {
    let era = names.register(name)
    do {
      let properties = try store()
      let length = Int(clamping: properties.length)
      return (Hold(name, length: length, names: names, era: era), properties)
    } catch {
      names.withdraw(name, era)
      throw error
    }
  }

  /// Counts a file that is held; others may have to go.
  func list(_ hold: Hold) {
    use(hold)
    map.store(hold, for: hold.name)
  }

  /// Returns a hold on a requested file; `nil` if it is not known.
  func hold(_ name: String) async -> Hold? {
    // Asking the map is what makes the file stay longer. A key that it does not have would start a fetch.
    guard map.cachedValue(name) != nil, let hold = try? await map.request(name) else { return nil }
    use(hold)
    return hold
  }

  /// Ends counting a part that is gone.
  func removePart(_ name: String) {
    names.forget(name)
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
    names.forget()
    map.clearMemory()
    let released = recent.withLock { recent in
      defer { recent = [] }
      return recent
    }
    withExtendedLifetime(released) {}
  }

  /// The names of the files and parts that count.
  var countedNames: [String] { map.keys }

  private func use(_ hold: Hold) {
    let released = recent.withLock { recent -> [Hold] in
      if let index = recent.firstIndex(where: { $0 === hold }) { recent.remove(at: index) }
      recent.append(hold)
      guard recent.count > Self.recentCount else { return [] }
      return [recent.removeFirst()]
    }
    withExtendedLifetime(released) {}
  }
}
