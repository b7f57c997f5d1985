internal import Plexus

/// The topics of an engine in memory, and their readers.
struct EventMemoryState: Sendable {
  /// The next step of a reader.
  enum Turn: Sendable {
    case deliver(LinkDelivery)
    /// There is nothing to deliver before that time, unless something changes.
    case wait(until: Duration?)
    /// The connection of the node broke.
    case interrupted
    /// The link was closed.
    case ended
  }

  private struct Entry: Sendable {
    let position: LinkPosition
    let message: LinkMessage
  }

  /// A message that a group has received and not acknowledged.
  private struct Pending: Sendable {
    /// The reader that handles it.
    var reader: Int?
    /// The time from which any reader gets it; `nil` as long as a reader handles it.
    var freeAt: Duration?
    var attempt: Int
  }

  private struct Group: Sendable {
    /// The position of the latest message that was delivered.
    var last = LinkPosition.start
    var pending: [LinkPosition: Pending] = [:]
  }

  private struct Topic: Sendable {
    var entries: [Entry] = []
    var last = LinkPosition.start
    var groups: [String: Group] = [:]
  }

  private struct Reader: Sendable {
    let node: Int
    let topic: String
    let mode: LinkMode
    /// The position up to which it has read; `nil` before it is connected.
    var position: LinkPosition?
    var isInterrupted = false
  }

  private struct Node: Sendable {
    var isConnected = true
    var isClosed = false
  }

  private var topics: [String: Topic] = [:]
  private var readers: [Int: Reader] = [:]
  private var lastReader = 0
  private var nodes: [Node] = []
  private var epoch: UInt64 = 1

  // MARK: - Nodes

  /// Adds a node, which is connected.
  ///
  /// - Returns: Its number.
  mutating func addNode() -> Int {
    nodes.append(Node())
    return nodes.count - 1
  }

  func isConnected(_ node: Int) -> Bool {
    nodes[node].isConnected && !nodes[node].isClosed
  }

  /// Breaks the connection of a node: the messages that it handles are free when their time is over.
  mutating func cutOff(_ node: Int, at now: Duration) {
    nodes[node].isConnected = false
    for (id, reader) in readers where reader.node == node {
      readers[id]?.isInterrupted = true
      release(by: id, at: now, isClean: false)
    }
  }

  mutating func reconnect(_ node: Int) {
    nodes[node].isConnected = true
  }

  mutating func close(_ node: Int, at now: Duration) {
    nodes[node].isClosed = true
    for (id, reader) in readers where reader.node == node {
      release(by: id, at: now, isClean: true)
    }
  }

  // MARK: - Messages

  /// Appends a message.
  ///
  /// - Returns: Its position.
  mutating func append(_ message: LinkMessage, to topic: String) -> LinkPosition {
    let last = topics[topic]?.last ?? .start
    let number = last.epoch == epoch ? last.number + 1 : 0
    let position = LinkPosition(epoch: epoch, number: number)
    topics[topic, default: Topic()].entries.append(Entry(position: position, message: message))
    topics[topic]?.last = position
    return position
  }

  /// The messages that a topic has.
  func messages(of topic: String) -> [LinkMessage] {
    (topics[topic]?.entries ?? []).map(\.message)
  }

  /// Removes the oldest messages, except a number of the latest ones.
  mutating func trim(_ topic: String, keeping count: Int) {
    let excess = (topics[topic]?.entries.count ?? 0) - count
    if excess > 0 { topics[topic]?.entries.removeFirst(excess) }
  }

  /// Loses all messages and groups.
  mutating func lose() {
    topics = [:]
    epoch += 1
  }

  // MARK: - Readers

  /// Adds a reader.
  ///
  /// - Returns: Its number.
  mutating func addReader(of topic: String, _ mode: LinkMode, by node: Int) -> Int {
    lastReader += 1
    readers[lastReader] = Reader(node: node, topic: topic, mode: mode)
    return lastReader
  }

  /// Removes a reader: the messages that it handles are free.
  mutating func removeReader(_ id: Int, at now: Duration) {
    release(by: id, at: now, isClean: true)
    readers[id] = nil
  }

  private mutating func release(by id: Int, at now: Duration, isClean: Bool) {
    guard let reader = readers[id], case .oneNode(let group, let retryAfter, _) = reader.mode,
      let pending = topics[reader.topic]?.groups[group]?.pending
    else { return }
    for (position, message) in pending where message.reader == id {
      topics[reader.topic]?.groups[group]?.pending[position] = Pending(
        freeAt: isClean ? now : now + retryAfter,
        attempt: message.attempt
      )
    }
  }

  /// Returns the next step of a reader, which is done with its last message.
  mutating func turn(of id: Int, at now: Duration) -> Turn {
    guard let reader = readers[id], !nodes[reader.node].isClosed else { return .ended }
    if reader.isInterrupted { return .interrupted }
    guard nodes[reader.node].isConnected else { return .wait(until: nil) }
    guard let position = reader.position else { return connect(id, reader) }
    switch reader.mode {
    case .publishOnly:
      return .ended
    case .ephemeral, .everyNode:
      guard let (delivery, position) = next(in: reader.topic, after: position) else {
        return .wait(until: nil)
      }
      readers[id]?.position = position
      return .deliver(delivery)
    case .oneNode(let group, let retryAfter, _):
      return turn(of: id, in: group, of: reader.topic, retryAfter, at: now)
    }
  }

  private mutating func connect(_ id: Int, _ reader: Reader) -> Turn {
    let last = topics[reader.topic]?.last ?? .start
    let position: LinkPosition
    switch reader.mode {
    case .everyNode(let start): position = start ?? last
    case .ephemeral, .publishOnly: position = last
    case .oneNode(let group, _, _):
      position =
        topics[reader.topic, default: Topic()].groups[group, default: Group()].last
    }
    readers[id]?.position = position
    return .deliver(.connected(at: position))
  }

  /// Returns the next message after a position, or the gap before it, and the position behind that.
  private func next(
    in name: String,
    after position: LinkPosition
  ) -> (LinkDelivery, LinkPosition)? {
    let topic = topics[name] ?? Topic()
    guard let entry = topic.entries.first(where: { $0.position > position }) else {
      return topic.last < position ? (.gap(lost: nil), topic.last) : nil
    }
    guard position.isFollowed(by: entry.position) else {
      let (epoch, number) = (entry.position.epoch, entry.position.number)
      let before = number == 0 ? .start : LinkPosition(epoch: epoch, number: number - 1)
      return (.gap(lost: position.positions(before: entry.position)), before)
    }
    return (.message(entry.message, at: entry.position, attempt: 1), entry.position)
  }

  private mutating func turn(
    of id: Int,
    in name: String,
    of topic: String,
    _ retryAfter: Duration,
    at now: Duration
  ) -> Turn {
    var group = topics[topic]?.groups[name] ?? Group()
    defer { topics[topic, default: Topic()].groups[name] = group }
    // The last message was neither acknowledged nor rejected.
    for (position, message) in group.pending where message.reader == id {
      group.pending[position] = Pending(freeAt: now + retryAfter, attempt: message.attempt)
    }
    let free = group.pending.filter { ($0.value.freeAt ?? .zero) <= now && $0.value.reader == nil }
    if let (position, message) = free.min(by: { $0.key < $1.key }) {
      guard let entry = topics[topic]?.entries.first(where: { $0.position == position }) else {
        group.pending[position] = nil
        return .deliver(.gap(lost: position...position))
      }
      let attempt = message.attempt + 1
      group.pending[position] = Pending(reader: id, attempt: attempt)
      return .deliver(.message(entry.message, at: position, attempt: attempt))
    }
    guard let (delivery, position) = next(in: topic, after: group.last) else {
      return .wait(until: group.pending.values.compactMap(\.freeAt).min())
    }
    group.last = position
    if case .message = delivery { group.pending[position] = Pending(reader: id, attempt: 1) }
    return .deliver(delivery)
  }

  // MARK: - Groups

  mutating func acknowledge(_ position: LinkPosition, of topic: String, group: String) {
    topics[topic]?.groups[group]?.pending[position] = nil
  }

  mutating func reject(
    _ position: LinkPosition,
    of topic: String,
    group: String,
    to deadLetters: String
  ) {
    guard topics[topic]?.groups[group]?.pending.removeValue(forKey: position) != nil,
      let entry = topics[topic]?.entries.first(where: { $0.position == position })
    else { return }
    _ = append(entry.message, to: deadLetters)
  }
}
