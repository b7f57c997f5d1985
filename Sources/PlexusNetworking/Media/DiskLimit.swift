internal import Foundation
internal import Plexus
internal import PlexusSupport

/// What keeps the complete files of a folder within a number of bytes.
///
/// A map with a capacity by cost decides, as it would in memory: its values are holds on the files, and the
/// last one to release a hold that the map has given up removes the file. So a file goes when it is evicted
/// and nobody uses it.
final class DiskLimit: Sendable {
  /// A hold on a file: as long as one exists, the limit does not remove the file.
  final class Hold: Sendable {
    fileprivate let length: Int
    private let file: URL
    private let name: String
    private let era: Int
    private let names: Names

    fileprivate init(_ name: String, at file: URL, length: Int, names: Names) {
      self.file = file
      self.length = length
      self.name = name
      self.names = names
      era = names.register(name)
    }

    fileprivate func isOf(_ name: String) -> Bool { self.name == name }

    deinit {
      names.release(name, era, file)
    }
  }

  /// How many holds there are of a name: the last one removes the file.
  ///
  /// A file that was evicted while it is used, and is asked for again, has several.
  fileprivate final class Names: Sendable {
    private struct State: Sendable {
      var counts: [String: Int] = [:]
      /// How often everything was forgotten.
      var era = 0
      var isOpen = true
    }

    private let state = Locked(State())

    /// - Returns: The era that the hold belongs to.
    func register(_ name: String) -> Int {
      state.withLock { state in
        state.counts[name, default: 0] += 1
        return state.era
      }
    }

    /// A hold has gone: the file goes with the last one.
    func release(_ name: String, _ era: Int, _ file: URL) {
      state.withLock { state in
        guard state.isOpen, state.era == era, let count = state.counts[name] else { return }
        state.counts[name] = count > 1 ? count - 1 : nil
        // With the lock, so that nobody takes hold of it in between.
        if count == 1 { try? FileManager.default.removeItem(at: file) }
      }
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
  /// The last files that were handed out: whoever asked has a moment to open them.
  private let recent = Locked<[Hold]>([])
  private let names = Names()

  /// How many files that were handed out last are not removed.
  static let recentCount = 8

  init(bytes: Int) {
    var policy = CachePolicy()
    policy.timeToLive = .seconds(1_000_000_000)
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

  /// A file is there from now on; others may have to go.
  @discardableResult
  func insert(_ name: String, at file: URL, length: Int) -> Hold {
    let hold = Hold(name, at: file, length: length, names: names)
    use(hold)
    map.store(hold, for: name)
    return hold
  }

  /// A file is asked for.
  ///
  /// - Returns: What keeps it; `nil` if it is not known.
  func hold(_ name: String) async -> Hold? {
    // Asking the map is what makes the file stay longer.
    guard let hold = try? await map.request(name) else { return nil }
    use(hold)
    return hold
  }

  /// A file has been removed.
  func remove(_ name: String) async {
    let released = recent.withLock { recent in
      let index = recent.firstIndex { $0.isOf(name) }
      return index.map { recent.remove(at: $0) }
    }
    withExtendedLifetime(released) {}
    try? await map.clear(name)
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
