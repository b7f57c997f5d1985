/// The ids of the latest messages, up to a number of them.
struct RecentIDsState: Sendable {
  private let limit: Int
  private var ids: Set<String> = []
  private var order: [String] = []
  /// The place of the oldest id, once the limit is reached.
  private var oldest = 0

  init(limit: Int) {
    self.limit = limit
  }

  func contains(_ id: String) -> Bool {
    ids.contains(id)
  }

  /// Adds an id in place of the oldest one, if the limit is reached.
  ///
  /// - Returns: Whether it was not known.
  @discardableResult
  mutating func insert(_ id: String) -> Bool {
    guard ids.insert(id).inserted else { return false }
    if order.count < limit {
      order.append(id)
    } else {
      ids.remove(order[oldest])
      order[oldest] = id
      oldest = (oldest + 1) % limit
    }
    return true
  }
}
