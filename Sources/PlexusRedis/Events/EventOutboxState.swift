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
  }

  /// The consequence of a new message.
  enum Admission: Sendable, Hashable {
    /// The batch has to be sent.
    case sends(Batch)
    /// A later batch will contain it.
    case waits
    /// There is no room for it beside the bytes that wait.
    case refused(bytes: Int)
  }

  private let limit: Int
  /// The messages of the topics that have a batch in flight.
  private var queues: [String: BatchQueueState<Message>] = [:]
  private(set) var published = PublishedState()
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
    guard queues[topic, default: BatchQueueState()].begin() else { return nil }
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
      return .refused(bytes: bytes + occupied)
    }
    count += 1
    bytes += message.size
    publishers[message.id] = publisher
    queues[topic]?.wait(message)
    return .waits
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
    guard var queue = queues[batch.topic] else { return (nil, []) }
    if let confirmed { published.confirm(confirmed, of: batch.topic) }
    var expired: [Message] = []
    var size = 0
    let messages = queue.next { message in
      if publishers[message.id] != nil, message.deadline > now {
        guard size == 0 || size + message.size <= batchBytes else { return .ends }
        size += message.size
        bytes -= message.size
        return .takes
      }
      // Its publisher has left, or its time is over.
      if publishers[message.id] != nil { expired.append(message) }
      bytes -= message.size
      count -= 1
      return .drops
    }
    queues[batch.topic] = queue.isIdle ? nil : queue
    return (messages.isEmpty ? nil : makeBatch(messages, of: batch.topic), expired)
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
