internal import Foundation
internal import Plexus

/// What keeps the complete files of a folder within a number of bytes.
///
/// A map with a capacity by cost decides, as it would in memory: its values are holds on the files, and the last one to
/// release a hold that the map has given up removes the file. So a file goes when it is evicted and nobody uses it.
final class DiskLimit: Sendable {
  /// A hold on a file: as long as one exists, the limit does not remove the file.
  final class Hold: Sendable {
    fileprivate let length: Int
    private let file: URL
    private let name: String
    private let number: Int
    private let names: Names

    fileprivate init(_ name: String, at file: URL, length: Int, names: Names) {
      self.file = file
      self.length = length
      self.name = name
      self.names = names
      number = names.register(name)
    }

    deinit {
      names.remove(name, number, file)
    }
  }

  /// Which hold of a name is the newest: that one removes the file.
  fileprivate final class Names: Sendable {
    private struct State: Sendable {
      var numbers: [String: Int] = [:]
      var next = 0
      var isOpen = true
    }

    private let state = Locked(State())

    func register(_ name: String) -> Int {
      state.withLock { state in
        state.next += 1
        state.numbers[name] = state.next
        return state.next
      }
    }

    /// Removes a file, unless somebody else holds it by now.
    func remove(_ name: String, _ number: Int, _ file: URL) {
      state.withLock { state in
        guard state.isOpen, state.numbers[name] == number else { return }
        state.numbers[name] = nil
        // With the lock, so that nobody takes hold of it in between.
        try? FileManager.default.removeItem(at: file)
      }
    }

    /// No hold of now removes anything.
    func forget() {
      state.withLock { $0.numbers = [:] }
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
