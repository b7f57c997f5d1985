/// The return value of a fetch for several keys: values, or a result for each key.
@usableFromInline
enum BulkValues<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  case values([Key: Value])
  case results([Key: Result<FetchResult<Value>, any Error>])

  /// Returns the outcome of a key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - previous: The value that the fetch renews.
  /// - Returns: The outcome; `nil` if nothing was returned for the key.
  /// - Throws: The error that was returned for the key; ``MultiplexerError/notModifiedWithoutValue``.
  @inlinable
  func outcome(of key: Key, renewing previous: ValueOutcome<Value>?) throws -> ValueOutcome<Value>?
  {
    switch self {
    case .values(let values):
      values[key].map { ValueOutcome($0) }
    case .results(let results):
      try results[key].map { try ValueOutcome($0.get(), renewing: previous) }
    }
  }
}
