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

  /// Returns whether there can be other keys than some distinct ones.
  @inlinable
  func hasOthers(than keys: [Key]) -> Bool {
    switch self {
    case .values(let values):
      values.count > keys.count || keys.count { values[$0] != nil } < values.count
    case .results(let results):
      results.count > keys.count || keys.count { results[$0] != nil } < results.count
    }
  }

  /// Returns the values to store of other keys than some.
  ///
  /// Errors, confirmations and values that must not be stored are left out.
  @inlinable
  func others(than keys: [Key]) -> [(key: Key, outcome: ValueOutcome<Value>)] {
    let requested = Set(keys)
    switch self {
    case .values(let values):
      return values.compactMap { key, value in
        requested.contains(key) ? nil : (key, ValueOutcome(value))
      }
    case .results(let results):
      return results.compactMap { key, result in
        guard !requested.contains(key), let result = try? result.get(),
          let outcome = try? ValueOutcome(result, renewing: nil), outcome.kind == .value
        else { return nil }
        return (key, outcome)
      }
    }
  }
}
