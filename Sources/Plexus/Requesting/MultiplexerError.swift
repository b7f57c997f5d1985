/// The reasons of a multiplexer's own for which a request fails.
///
/// What a fetch throws is passed on as it is, and a cancelled caller gets a `CancellationError`.
@nonexhaustive
public enum MultiplexerError: Error, Hashable, Sendable {
  /// A fetch asked, directly or through other fetches, for what it is fetching itself.
  ///
  /// The chain names the fetches in the order in which they would wait for each other; it begins and
  /// ends with the one that asked. A fetch is named by the id of its multiplexer, or its type if it
  /// has none, and by its key. Loads of publishers, actions of debouncers and handlers of events that stand in between
  /// are left out.
  ///
  /// A fetch is recognized by a task-local value. A task that it creates with `Task { }` has that value, too, and
  /// nothing tells whether the fetch is going to wait for that task: a request of the fetch's own key in there
  /// throws until the fetch has ended. Use `Task.detached` for work that the fetch does not wait for. A fetch
  /// that waits for itself through a detached task is not recognized; ``CachePolicy/fetchTimeout`` ends it.
  case recursiveRequest(chain: [String])
  /// An attempt to fetch took longer than the policy allows.
  case fetchTimedOut(after: Duration)
  /// A fetch for several keys returned no value for this one.
  case missingKey(String)
  /// A fetch said that the value has not changed when there was none.
  case notModifiedWithoutValue
  /// The cacher has not returned from a call, or from one before it, in the time that the policy allows.
  case storageTimedOut(after: Duration)
  /// Values left memory faster than the cacher stores them, and one was given up.
  case storageOverloaded
}

extension MultiplexerError: OriginFailure {
  /// Whether the origin has failed: not if the fetch itself is wrong, which no stale value is to hide.
  public var isOriginFailure: Bool {
    switch self {
    case .recursiveRequest, .notModifiedWithoutValue, .storageTimedOut, .storageOverloaded:
      false
    case .fetchTimedOut, .missingKey: true
    }
  }
}

extension MultiplexerError: CustomStringConvertible {
  /// A description of the error and its solution.
  public var description: String {
    switch self {
    case .recursiveRequest(let chain):
      """
      A fetch would wait for itself: \(chain.joined(separator: " -> ")). Ask for what it needs \
      before it begins, or take it from another source.
      """
    case .fetchTimedOut(let duration):
      "The fetch took longer than \(duration). Raise the policy's fetchTimeout if that is normal."
    case .missingKey(let key):
      "The fetch returned no value for the key \(key). Return one for each key that it is given."
    case .notModifiedWithoutValue:
      """
      The fetch returned .notModified without a previous value. Send no validator when the context \
      has none.
      """
    case .storageTimedOut(let duration):
      """
      The cacher did not return within \(duration). What was to be removed may still be stored, but is not \
      used; what was to be written may not be stored. Call clear() or flush() again, or raise the policy's \
      storageTimeout if the cacher is that slow.
      """
    case .storageOverloaded:
      """
      Values left memory faster than the cacher stores them, and this one is lost. Raise the capacity, or call \
      flush() before memory is full.
      """
    }
  }
}
