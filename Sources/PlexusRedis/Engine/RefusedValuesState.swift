/// The sizes of the values that the server did not take, by their keys.
struct RefusedValuesState: Sendable {
  /// The number of keys; the oldest one is forgotten.
  static var limit: Int { 1_024 }

  private var sizes: [String: Int] = [:]
  private var order: [String] = []

  /// Returns whether a value is as large as one that was refused.
  func refuses(_ key: String, size: Int) -> Bool {
    !sizes.isEmpty && sizes[key].map { size >= $0 } ?? false
  }

  /// Records that a value was refused.
  ///
  /// - Returns: Whether no value of this size was refused before.
  mutating func refuse(_ key: String, size: Int) -> Bool {
    guard let known = sizes[key] else {
      if order.count >= Self.limit { sizes[order.removeFirst()] = nil }
      order.append(key)
      sizes[key] = size
      return true
    }
    sizes[key] = min(known, size)
    return size < known
  }
}
