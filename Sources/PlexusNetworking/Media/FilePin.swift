internal import PlexusSupport

/// A pin of a file: while one exists, the ``DiskLimit`` does not remove the file.
///
/// The last pin of a file that was evicted removes the file when it is released.
final class FilePin: Sendable {
  let name: String
  let length: Int
  private let era: Int
  private let registry: Registry

  /// Creates a pin that was registered.
  init(_ name: String, length: Int, in registry: Registry, era: Int) {
    self.name = name
    self.length = length
    self.registry = registry
    self.era = era
  }

  deinit {
    registry.release(name, era)
  }

  /// The number of pins of each file: the last one removes the file.
  ///
  /// A file that was evicted while it is used, and is requested again, has several.
  final class Registry: Sendable {
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

    /// Registers a pin.
    ///
    /// - Returns: The era that the pin belongs to.
    func register(_ name: String) -> Int {
      state.withLock { state in
        state.counts[name, default: 0] += 1
        return state.era
      }
    }

    /// A pin has ended; the last one removes the file.
    func release(_ name: String, _ era: Int) {
      state.withLock { state in
        guard state.isOpen, state.era == era, let count = state.counts[name] else { return }
        state.counts[name] = count > 1 ? count - 1 : nil
        // With the lock, so that no pin is taken in between.
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

    /// Ends the pins of a part that is gone, whose name is not used again.
    func forget(_ part: String) {
      state.withLock { $0.counts[part] = nil }
    }

    /// No pin of now removes anything.
    func forget() {
      state.withLock { state in
        state.counts = [:]
        state.era += 1
      }
    }

    /// No pin removes anything from now on.
    func close() {
      state.withLock { $0.isOpen = false }
    }
  }
}
