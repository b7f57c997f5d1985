internal import PlexusSupport

/// A pin of a file: while one exists, the ``DiskLimit`` does not remove the file.
///
/// The last pin of a file that was evicted removes the file when it is released.
final class FilePin: Sendable {
  let name: String
  let length: Int
  let generation: Int
  private let registry: Registry

  /// Creates a pin that was registered.
  init(_ name: String, length: Int, in registry: Registry, generation: Int) {
    self.name = name
    self.length = length
    self.registry = registry
    self.generation = generation
  }

  deinit {
    registry.release(name, generation)
  }

  /// The files that count, and the number of pins of each: the last one removes the file.
  ///
  /// A file that was evicted while it is used, and is requested again, has several.
  final class Registry: Sendable {
    private struct Entry: Sendable {
      /// The pins of an earlier entry of the same name have another number.
      let generation: Int
      var length: Int
      var count = 0
      /// The number of pins whose file is about to be stored.
      var arriving = 0
    }

    private struct State: Sendable {
      var entries: [String: Entry] = [:]
      var bytes: Int64 = 0
      var lastGeneration = 0
      var isOpen = true

      @discardableResult
      mutating func remove(_ name: String) -> Int? {
        guard let entry = entries.removeValue(forKey: name) else { return nil }
        bytes -= Int64(entry.length)
        return entry.generation
      }

      mutating func register(_ name: String, length: Int) -> Int {
        if entries[name] == nil {
          lastGeneration += 1
          entries[name] = Entry(generation: lastGeneration, length: 0)
        }
        setLength(length, of: name)
        entries[name]?.count += 1
        return entries[name]?.generation ?? lastGeneration
      }

      mutating func setLength(_ length: Int, of name: String) {
        bytes += Int64(length) - Int64(entries[name]?.length ?? 0)
        entries[name]?.length = length
      }

      /// Ends a pin.
      ///
      /// - Returns: Whether it was the last one.
      mutating func release(_ name: String, _ generation: Int) -> Bool {
        guard let entry = entries[name], entry.generation == generation else { return false }
        guard entry.count == 1 else {
          entries[name]?.count -= 1
          return false
        }
        remove(name)
        return true
      }
    }

    private let folder: MediaFolder
    private let state = Locked(State())

    init(folder: MediaFolder) {
      self.folder = folder
    }

    /// The bytes of all files and parts with pins.
    var bytes: Int64 { state.withLock { $0.bytes } }

    /// The files and parts with pins, and their lengths.
    var lengths: [String: Int] { state.withLock { $0.entries.mapValues(\.length) } }

    /// Returns the number of bytes that a file or part counts for; `nil` if it does not count.
    func length(of name: String) -> Int? { state.withLock { $0.entries[name]?.length } }

    /// Registers a pin.
    ///
    /// - Returns: The generation that the pin belongs to.
    func register(_ name: String, length: Int) -> Int {
      state.withLock { $0.register(name, length: length) }
    }

    /// Registers a pin of a file that is about to be stored, which ``arrive(_:_:length:)`` or ``withdraw(_:_:)`` must
    /// follow.
    func expect(_ name: String) -> Int {
      state.withLock { state in
        let generation = state.register(name, length: state.entries[name]?.length ?? 0)
        state.entries[name]?.arriving += 1
        return generation
      }
    }

    /// An expected file has been stored.
    func arrive(_ name: String, _ generation: Int, length: Int) {
      state.withLock { state in
        guard state.entries[name]?.generation == generation else { return }
        state.entries[name]?.arriving -= 1
        state.setLength(length, of: name)
      }
    }

    /// Takes back the pin of an expected file, without removing the existing file.
    func withdraw(_ name: String, _ generation: Int) {
      state.withLock { state in
        guard state.entries[name]?.generation == generation else { return }
        state.entries[name]?.arriving -= 1
        _ = state.release(name, generation)
      }
    }

    /// Registers a pin of a file that does not count yet, if it is there.
    ///
    /// - Returns: The generation; `nil` if the file counts, or is gone.
    func adopt(_ name: String, length: Int) -> Int? {
      state.withLock { state in
        // With the lock, in which files are evicted.
        guard state.entries[name] == nil, folder.has(name) else { return nil }
        return state.register(name, length: length)
      }
    }

    /// A pin has ended; the last one removes the file.
    func release(_ name: String, _ generation: Int) {
      state.withLock { state in
        // With the lock, so that no pin is taken in between.
        if state.isOpen, state.release(name, generation) { folder.evict(name) }
      }
    }

    /// A file or part has been removed: no pin of now removes another one of its name.
    ///
    /// - Returns: The generation of its pins; `nil` if it did not count.
    func forget(_ name: String) -> Int? {
      state.withLock { $0.remove(name) }
    }

    /// Forgets a file or part that others have removed.
    ///
    /// - Returns: The generation of its pins; `nil` if it is there, or did not count.
    func forgetMissing(_ name: String) -> Int? {
      state.withLock { state in
        guard state.entries[name]?.arriving == 0, !folder.has(name) else { return nil }
        return state.remove(name)
      }
    }

    /// No pin of now removes anything.
    func forget() {
      state.withLock { state in
        state.entries = [:]
        state.bytes = 0
      }
    }

    /// No pin removes anything from now on.
    func close() {
      state.withLock { $0.isOpen = false }
    }
  }
}
