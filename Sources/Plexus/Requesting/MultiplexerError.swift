/// An error of a multiplexer itself.
///
/// Errors of a fetch are passed on unchanged, and a cancelled caller gets a `CancellationError`.
@nonexhaustive
public enum MultiplexerError: Error, Hashable, Sendable {
  /// A fetch has requested its own value, directly or through other fetches.
  ///
  /// The chain names the fetches in the order in which they would wait for each other. It begins and ends with the
  /// fetch that made the request. A fetch is named by the id of its multiplexer, or by its type, and by its key. Loads
  /// of publishers, actions of debouncers and handlers of events in between are omitted.
  ///
  /// A fetch is identified by a task-local value, which a task that it creates with `Task { }` inherits. Whether the
  /// fetch will wait for that task is unknown, so a request of the fetch's own key in that task throws until the fetch
  /// has ended. Use `Task.detached` for work that the fetch does not wait for. A fetch that waits for itself through a
  /// detached task is not detected; ``CachePolicy/fetchTimeout`` ends it.
  case recursiveRequest(chain: [String])
  /// An attempt to fetch took longer than the policy allows.
  case fetchTimedOut(after: Duration)
  /// A fetch of several keys returned no value for this key.
  case missingKey(String)
  /// A fetch returned `.notModified` although there was no previous value.
  case notModifiedWithoutValue
  /// The cacher did not return from this call, or from an earlier one, in the time that the policy allows.
  case storageTimedOut(after: Duration)
  /// Values were evicted faster than the cacher stores them, and one was given up.
  case storageOverloaded
  /// Too many fetches wait for a place: see ``CachePolicy/maximumWaitingFetches``.
  case overloaded
}

extension MultiplexerError: OriginFailure {
  /// Whether the origin has failed; `false` if the fetch itself is wrong, which a stale value must not hide.
  public var isOriginFailure: Bool {
    switch self {
    case .recursiveRequest, .notModifiedWithoutValue, .storageTimedOut, .storageOverloaded:
      false
    case .fetchTimedOut, .missingKey, .overloaded: true
    }
  }
}

extension MultiplexerError: CustomStringConvertible {
  /// A description of the error and its solution.
  public var description: String {
    switch self {
    case .recursiveRequest(let chain):
      """
      A fetch would wait for itself: \(chain.joined(separator: " -> ")). Request the values that it \
      needs before it starts, or get them from another source.
      """
    case .fetchTimedOut(let duration):
      "The fetch took longer than \(duration). Raise the policy's fetchTimeout if that is normal."
    case .missingKey(let key):
      "The fetch returned no value for the key \(key). Return a value for each requested key."
    case .notModifiedWithoutValue:
      """
      The fetch returned .notModified without a previous value. Send no validator if the context has none.
      """
    case .storageTimedOut(let duration):
      """
      The cacher did not return within \(duration). Removed entries may still be stored, but are not used; \
      written entries might not be stored. Call clear() or flush() again, or raise the policy's storageTimeout if \
      the cacher is that slow.
      """
    case .storageOverloaded:
      """
      Values were evicted faster than the cacher stores them, and this one is lost. Raise the capacity, or call \
      flush() before the capacity is reached.
      """
    case .overloaded:
      """
      Too many fetches wait for others to end. Try again later, or raise the policy's maximumConcurrentFetches or \
      maximumWaitingFetches.
      """
    }
  }
}
