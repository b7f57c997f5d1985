/// Who may go on at a host, who waits, and who is next.
///
/// Invariants:
///
/// - Nobody waits at a host where fewer go on than may.
/// - A turn that ends is handed to the one who waits with the highest demand, the first of these.
struct HostGateState<Key: Hashable & Sendable>: Sendable {
  private struct Waiter: Sendable {
    let id: Int
    let key: Key
  }

  let limit: Int
  private var running: [String: Int] = [:]
  private var waiters: [String: [Waiter]] = [:]
  /// How urgent a key is to each of those who ask for it.
  private var demand: [Key: [Int]] = [:]

  init(limit: Int) {
    self.limit = limit
  }

  /// Somebody asks for a key from now on.
  mutating func want(_ key: Key, urgency: Int) {
    demand[key, default: []].append(urgency)
  }

  /// Somebody no longer asks for a key.
  mutating func unwant(_ key: Key, urgency: Int) {
    guard let index = demand[key]?.firstIndex(of: urgency) else { return }
    demand[key]?.remove(at: index)
    if demand[key]?.isEmpty == true { demand[key] = nil }
  }

  /// Somebody comes to a host.
  ///
  /// - Returns: Whether it may go on; else it waits.
  mutating func enter(_ host: String, id: Int, for key: Key) -> Bool {
    guard running[host, default: 0] < limit else {
      waiters[host, default: []].append(Waiter(id: id, key: key))
      return false
    }
    running[host, default: 0] += 1
    return true
  }

  /// Somebody no longer waits.
  mutating func cancel(_ id: Int, at host: String) {
    waiters[host]?.removeAll { $0.id == id }
  }

  /// A turn has ended.
  ///
  /// - Returns: Who may go on.
  mutating func leave(_ host: String) -> Int? {
    guard let line = waiters[host], !line.isEmpty else {
      waiters[host] = nil
      running[host, default: 1] -= 1
      if running[host] == 0 { running[host] = nil }
      return nil
    }
    var best = 0
    for index in line.indices where rank(line[index]) > rank(line[best]) { best = index }
    return waiters[host]?.remove(at: best).id
  }

  /// Whether nobody is known.
  var isEmpty: Bool { running.isEmpty && waiters.isEmpty && demand.isEmpty }

  private func rank(_ waiter: Waiter) -> Int {
    demand[waiter.key]?.max() ?? -1
  }
}
