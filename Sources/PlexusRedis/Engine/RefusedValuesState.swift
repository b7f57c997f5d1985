/// The sizes of the values that the server did not take, by their keys.
///
/// A disturbance can look like a value that is too slow: after some time, a value is sent again.
struct RefusedValuesState<Instant: InstantProtocol>: Sendable
where Instant.Duration == Duration, Instant: Sendable {
  private struct Refusal: Sendable {
    var size: Int
    /// The time from which a value is sent again.
    var end: Instant
  }

  /// The number of keys; the oldest one is forgotten.
  static var limit: Int { 1_024 }
  /// The time for which a value is not sent again.
  static var time: Duration { .seconds(300) }

  private var refusals: [String: Refusal] = [:]
  private var order: [String] = []

  /// Returns whether a value is as large as one that was refused.
  func refuses(_ key: String, size: Int, at now: Instant) -> Bool {
    guard !refusals.isEmpty, let known = refusals[key] else { return false }
    return size >= known.size && now < known.end
  }

  /// Records that a value was refused.
  ///
  /// - Returns: Whether no value of this size was refused before.
  mutating func refuse(_ key: String, size: Int, at now: Instant) -> Bool {
    let end = now.advanced(by: Self.time)
    guard let known = refusals[key] else {
      if order.count >= Self.limit { refusals[order.removeFirst()] = nil }
      order.append(key)
      refusals[key] = Refusal(size: size, end: end)
      return true
    }
    refusals[key] = Refusal(size: min(known.size, size), end: end)
    return size < known.size
  }

  /// Records that the server has taken a value.
  mutating func take(_ key: String) {
    guard refusals.removeValue(forKey: key) != nil else { return }
    order.removeAll { $0 == key }
  }
}
