// @unchecked Sendable because every field is guarded by the lock of the hub that owns the object.

extension HubBase {
  /// The readers of the log and of the window, of which a hub otherwise has only the number.
  @usableFromInline
  final class KnownReaders: @unchecked Sendable {
    /// A reader, which can be about to be deallocated.
    private struct Known {
      weak let reader: Reader?
    }

    @exclusivity(unchecked) @safe
    private var readers: [Int: Known] = [:]

    init() {}

    /// The number of readers.
    var count: Int { readers.count }

    /// Adds a registered reader, unless it has a buffer that the hub lists.
    @usableFromInline
    func insert(_ reader: Reader) {
      guard reader.isRegistered, reader.readsLog || reader.readsWindow else { return }
      if readers[reader.id] == nil { readers[reader.id] = Known(reader: reader) }
    }

    /// Removes a reader.
    @usableFromInline
    func remove(_ reader: Reader) {
      readers[reader.id] = nil
    }

    /// Returns at most as many readers as given, to be released with no lock held: that can end their subscriptions.
    func first(_ count: Int) -> [Reader] {
      readers.values.prefix(count).compactMap(\.reader)
    }
  }
}
