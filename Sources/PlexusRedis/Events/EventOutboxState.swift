internal import Plexus

/// The messages that this process publishes, until the engine has answered them.
///
/// The messages of each topic go through a queue: the engine appends a batch by one script, which costs it a fifth of a
/// script for each message.
///
/// Invariants:
///
/// - A batch has a number that no other batch of its topic has, and is sent with the same content each time.
/// - A publisher is taken once: with the result of its message, or when it leaves.
struct EventOutboxState<Publisher: Sendable>: Sendable {
  /// A message with a name in this process.
  struct Message: Sendable, Hashable {
    let id: UInt64
    let header: String
    let body: [UInt8]
    /// The time at which it is no longer sent.
    let deadline: Nanoseconds
    /// The raw value of the priority of its publisher.
    var priority = TaskPriority.medium.rawValue

    /// The number of bytes.
    var size: Int { header.utf8.count + body.count }
  }

  /// Messages that are sent together.
  ///
  /// Afterwards, ``finish(_:confirmed:at:)`` has to be called.
  struct Batch: Sendable, Hashable {
    let topic: String
    let number: UInt64
    let messages: [Message]
    /// A batch that was confirmed before.
    let latest: PublishedState.Confirmed?

    /// The priority of the most urgent message.
    var priority: TaskPriority {
      messages.map(\.priority).max().map { TaskPriority(rawValue: $0) } ?? .medium
    }
  }

  /// The consequence of a new message.
  enum Admission: Sendable, Hashable {
    /// The batch has to be sent.
    case sends(Batch)
    /// A later batch will contain it.
    case waits
    /// There is no room for it beside the bytes that wait.
    case refused(RedisConnectionError)
  }

  /// The messages of a topic that has a batch in flight.
  private struct Queue: Sendable {
    var messages = BatchQueueState<Message>()
    /// The number of bytes of the messages that wait.
    var size = 0
  }

  private let limit: Int
  private var queues: [String: Queue] = [:]
  private var published = PublishedState()
  private var publishers: [UInt64: Publisher] = [:]
  private var lastID: UInt64 = 0
  /// The number of bytes of the messages that wait.
  private(set) var bytes = 0
  /// The number of messages without a result.
  private(set) var count = 0

  /// - Parameter limit: The largest number of bytes that wait.
  init(limit: Int) {
    self.limit = limit
  }

  /// Returns a name for a message.
  mutating func makeID() -> UInt64 {
    lastID += 1
    return lastID
  }

  /// Begins a batch of one message, unless it has to wait.
  mutating func begin(_ message: Message, to topic: String) -> Batch? {
    guard queues[topic, default: Queue()].messages.begin() else { return nil }
    count += 1
    return makeBatch([message], of: topic)
  }

  /// Adds a message with its publisher.
  ///
  /// - Parameters:
  ///   - message: The message.
  ///   - topic: Its topic.
  ///   - publisher: The task that waits for its result.
  ///   - occupied: The number of bytes that wait elsewhere.
  /// - Returns: The consequence.
  mutating func add(
    _ message: Message,
    to topic: String,
    by publisher: Publisher,
    beside occupied: Int
  ) -> Admission {
    if let batch = begin(message, to: topic) {
      publishers[message.id] = publisher
      return .sends(batch)
    }
    guard message.size <= limit - bytes - occupied else {
      return .refused(
        .outboxFull(bytes: message.size, waiting: bytes + occupied, limit: limit)
      )
    }
    count += 1
    bytes += message.size
    publishers[message.id] = publisher
    guard var queue = queues.removeValue(forKey: topic) else { return .waits }
    queue.size += message.size
    var cut = Cut()
    let batch = queue.messages.wait(message, isLarge: queue.size >= batchBytes) {
      judge($0, at: .min, &cut)
    }
    queue.size -= cut.bytes
    queues[topic] = queue
    return batch.isEmpty ? .waits : .sends(makeBatch(batch, of: topic))
  }

  /// Takes the publisher of a message, if it has not left.
  mutating func takePublisher(of id: UInt64) -> Publisher? {
    publishers.removeValue(forKey: id)
  }

  /// Ends a batch that was answered, or has failed.
  ///
  /// - Parameters:
  ///   - batch: The batch.
  ///   - confirmed: Its place, if the engine has confirmed it.
  ///   - now: The time.
  /// - Returns: The next batch, and the messages whose time is over.
  mutating func finish(
    _ batch: Batch,
    confirmed: PublishedState.Confirmed?,
    at now: Nanoseconds
  ) -> (next: Batch?, expired: [Message]) {
    count -= batch.messages.count
    if let confirmed { published.confirm(confirmed, of: batch.topic) }
    guard var queue = queues.removeValue(forKey: batch.topic) else { return (nil, []) }
    var cut = Cut()
    let messages = queue.messages.next { judge($0, at: now, &cut) }
    queue.size -= cut.bytes
    if !queue.messages.isIdle { queues[batch.topic] = queue }
    return (messages.isEmpty ? nil : makeBatch(messages, of: batch.topic), cut.expired)
  }

  /// The messages that leave a queue together.
  private struct Cut {
    /// The number of bytes of all of them.
    var bytes = 0
    /// The number of bytes of the messages that are sent.
    var batchBytes = 0
    var expired: [Message] = []
  }

  /// Decides whether a message leaves its queue, and whether it is sent.
  private mutating func judge(
    _ message: Message,
    at now: Nanoseconds,
    _ cut: inout Cut
  ) -> BatchQueueState<Message>.Verdict {
    let hasPublisher = publishers[message.id] != nil
    let isSent = hasPublisher && message.deadline > now
    if isSent {
      guard cut.batchBytes == 0 || cut.batchBytes + message.size <= batchBytes else { return .ends }
      cut.batchBytes += message.size
    } else {
      count -= 1
      if hasPublisher { cut.expired.append(message) }
    }
    cut.bytes += message.size
    bytes -= message.size
    return isSent ? .takes : .drops
  }

  /// The largest number of bytes of a batch with several messages.
  private var batchBytes: Int { min(256 << 10, limit / 4) }

  private mutating func makeBatch(_ messages: [Message], of topic: String) -> Batch {
    Batch(
      topic: topic,
      number: published.next(),
      messages: messages,
      latest: published.latest(of: topic)
    )
  }
}
