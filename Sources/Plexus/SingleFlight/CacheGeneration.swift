/// The number of removals from a ``Cacher`` at a point in time.
///
/// A cacher that several instances or processes share counts the removals of all of them. A multiplexer reads the
/// generation before each attempt to fetch a value and before it stores one, and passes it to the cacher with the value, in
/// ``CacheEntry/generation``. The cacher does not store a value that has been removed since.
public struct CacheGeneration: Hashable, Sendable {
  /// An identifier of the count, which changes when counting restarts; 0 if there was no count yet.
  public var epoch: UInt64
  /// The number of removals: one for each key, each prefix and each removal of everything.
  public var number: UInt64
  /// The number of refreshes and of clears by tag, if the cacher records them.
  ///
  /// Of a shared cacher that compares entries, it is the number of changes that have reached the process. Otherwise it is 0.
  package var marks: UInt64 = 0

  /// Creates a generation.
  ///
  /// - Parameters:
  ///   - epoch: An identifier of the count, which changes when counting restarts; 0 if there was none yet.
  ///   - number: The number of removals.
  public init(epoch: UInt64 = 0, number: UInt64 = 0) {
    self.epoch = epoch
    self.number = number
  }
}
