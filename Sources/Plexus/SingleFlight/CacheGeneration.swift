/// How much had been removed from a ``Cacher`` at some time.
///
/// A cacher that several instances or processes share counts removals, whoever asks for them. A multiplexer notes the
/// generation before it fetches a value, or when one is stored, and hands it to the cacher with the value:
/// ``CacheEntry/generation``. The cacher leaves out what has been removed since.
public struct CacheGeneration: Hashable, Sendable {
  /// What tells one count from another that was begun anew; 0 if there was none yet.
  public var epoch: UInt64
  /// The number of removals: one for each key, for each prefix, and for each removal of everything.
  public var number: UInt64

  /// Creates a generation.
  ///
  /// - Parameters:
  ///   - epoch: What tells one count from another that was begun anew; 0 if there was none yet.
  ///   - number: The number of removals.
  public init(epoch: UInt64 = 0, number: UInt64 = 0) {
    self.epoch = epoch
    self.number = number
  }
}
