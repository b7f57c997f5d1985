internal import Synchronization

/// The cacher behind a multiplexer or a map.
///
/// Writing and removing happen in one lane, one after the other, so that what is removed stays removed
/// whatever was being written. Reading does not wait for them.
@usableFromInline
final class Storage<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  let cacher: any Cacher<Value>
  /// The only key that there is, as the cacher knows it; others may keep entries of their own there.
  @usableFromInline let onlyName: String?
  let lane = SerialLane()
  private let makeName: @Sendable (Key) -> String
  private let isWriting = Atomic<Bool>(false)
  /// The values that had left memory and could not be written, until somebody is told.
  private let losses = Locked<[String: any Error]>([:])

  @usableFromInline
  init(cacher: any Cacher<Value>, name: @escaping @Sendable (Key) -> String) {
    self.cacher = cacher
    onlyName = nil
    makeName = name
  }

  @usableFromInline
  init(cacher: any Cacher<Value>, onlyName: String) {
    self.cacher = cacher
    self.onlyName = onlyName
    makeName = { _ in onlyName }
  }

  /// The key as the cacher knows it.
  @usableFromInline
  func name(of key: Key) -> String {
    makeName(key)
  }

  /// Sees to it that values that have left memory are written, unless that is on its way already.
  @usableFromInline
  func scheduleWriting(in cache: KeyedCache<Key, Value>) {
    guard !isWriting.exchange(true, ordering: .acquiringAndReleasing) else { return }
    lane.add { [self] in
      isWriting.store(false, ordering: .releasing)
      _ = await cache.synchronize(self, flushing: false)
    }
  }

  /// A value has left memory and could not be written.
  ///
  /// So many are remembered that nobody will read a longer list, for nobody may ever ask.
  func noteLoss(_ name: String, _ error: any Error) {
    let old = losses.withLock { losses -> (any Error)? in
      guard losses.count < 4096 || losses[name] != nil else { return nil }
      return losses.updateValue(error, forKey: name)
    }
    withExtendedLifetime(old) {}
  }

  /// The cacher has newer values.
  func forgetLosses(_ names: some Sequence<String>) {
    let old = losses.withLock { losses in
      losses.isEmpty ? [] : names.map { losses.removeValue(forKey: $0) }
    }
    withExtendedLifetime(old) {}
  }

  /// The values that could not be written since the last call.
  func takeLosses() -> [String: any Error] {
    losses.withLock { losses in
      let taken = losses
      losses = [:]
      return taken
    }
  }
}

/// What one turn of writing and removing came to.
struct StorageReport: Sendable {
  /// Why not all copies could be removed, if that was to be done.
  var completeRemovalError: (any Error)?
  /// The copies that could not be removed.
  var failedRemovals: [String: any Error] = [:]
  /// The values that could not be written.
  var failedWrites: [String: any Error] = [:]

  /// Whether everything could be removed that was to be.
  var hasRemoved: Bool { completeRemovalError == nil && failedRemovals.isEmpty }
}
