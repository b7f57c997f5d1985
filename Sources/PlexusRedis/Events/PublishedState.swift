internal import Plexus

/// The batches of messages that a node has published: their numbers, and the latest one of each topic.
///
/// A topic without a message for the time for which the engine remembers numbers is forgotten: the node then does not
/// report that the engine has lost the topic, which its readers do.
struct PublishedState: Sendable {
  /// A batch that the engine has confirmed.
  struct Confirmed: Sendable, Hashable {
    let number: UInt64
    /// The position of its first message.
    let position: LinkPosition
    /// The time before it was sent.
    let time: Nanoseconds
  }

  private var count: UInt64 = 0
  private var topics: [String: Confirmed] = [:]
  /// The number of topics beyond which those without recent messages are forgotten.
  private var limit = 1_024

  /// The number of topics.
  var topicCount: Int { topics.count }

  /// Returns the number of the next batch, which increases over all topics.
  mutating func next() -> UInt64 {
    count += 1
    return count
  }

  /// Returns the latest batch of a topic.
  func latest(of topic: String) -> Confirmed? {
    topics[topic]
  }

  /// Records a batch.
  mutating func confirm(_ batch: Confirmed, of topic: String) {
    if let latest = topics[topic], latest.position >= batch.position { return }
    topics[topic] = batch
    guard topics.count > limit else { return }
    topics = topics.filter { batch.time - $0.value.time < TopicNames.memory }
    limit = max(1_024, 2 * topics.count)
  }
}
