/// The work that a change under a lock leaves to be done once the lock is released, because it may run
/// user code or resume tasks.
@usableFromInline
struct Effects: Sendable {
  /// Deliveries to the subscribers of keys, in order.
  var deliveries: [@Sendable () -> Void] = []
  /// Events for the listeners of the cache, in order.
  var events: [@Sendable () -> Void] = []
  /// Flights whose callers get an outcome.
  @usableFromInline var settled: [(flight: Flight, outcome: Outcome)] = []
  /// Flights to cancel.
  @usableFromInline var cancelled: [Flight] = []
  /// Flights to launch.
  @usableFromInline var launched: [Flight] = []
  /// Objects that were taken out, to be released.
  @usableFromInline var released: [any AnyObject & Sendable] = []
  /// Whether the cacher has to be told something that no call of `flush` or `clear` is about to tell it.
  @usableFromInline var callsCacher = false
  /// Whether there is a value that the cacher does not have.
  @usableFromInline var hasChange = false
  /// Whether there are listeners to the events of the cache.
  @usableFromInline let tellsEvents: Bool

  @usableFromInline
  init(tellsEvents: Bool) {
    self.tellsEvents = tellsEvents
  }

  /// Keeps something alive until the lock is released.
  @inlinable
  mutating func release<Content: Sendable>(_ content: Content) {
    released.append(Effects.Released(content))
  }

  /// Does the work.
  ///
  /// - Parameter engine: The cache that has been changed.
  @usableFromInline
  consuming func perform(in engine: CacheEngine) {
    for deliver in deliveries { deliver() }
    for tell in events { tell() }
    for (flight, outcome) in settled { flight.finish(outcome) }
    for flight in cancelled { flight.cancel() }
    engine.launch(launched)
    if callsCacher { engine.scheduleWriting() }
    if hasChange { engine.noteChange() }
  }
}

extension Effects {
  /// Something that was taken out of a table under its lock.
  @usableFromInline
  final class Released<Content: Sendable>: Sendable {
    private let content: Content

    @usableFromInline
    init(_ content: Content) {
      self.content = content
    }
  }
}
