public import Testing

/// A sentence of the documentation on which users can rely, and which tests verify.
///
/// A guarantee is declared once, and is a trait of its tests:
///
/// ```swift
/// @Test(.guarantee(.hitDoesNotSuspend)) func `a hit does not suspend`() { … }
/// ```
///
/// `.ci/update` writes the article *Relying on Plexus* from the declarations: topic by topic, and within a topic in the
/// order of the files and of their lines. `.ci/check guarantees` fails if a guarantee has no test.
public struct Guarantee: Sendable {
  /// A section of the article, in the order of the article. The names of files begin with it.
  public enum Topic: String, Sendable {
    case broadcasters = "All broadcasters"
    case subscriptions = "Subscriptions, buffering and handlers"
    case messengers = "Messengers"
    case data = "Data with a loading state"
    case events = "Events"
    case caches = "Requests and caches"
    case storage = "Storage"
    case sharedCaches = "Caches that processes share"
    case sharedEvents = "Events between processes"
    case servers = "Redis servers, sentinels and clusters"
    case media = "Media and HTTP"
    case timing = "Debouncing and throttling"
    case stores = "Stores"
    case values = "Current values and views"
    case liveData = "Live data"
    case sequences = "Following sequences"
    case testing = "Testing tools"
    case inspector = "The inspector"
  }

  /// The section of the article that has the sentence.
  public let topic: Topic

  /// The sentence, or a few of them, as the article has it.
  public let sentence: String

  init(_ topic: Topic, _ sentence: String) {
    self.topic = topic
    self.sentence = sentence
  }
}

extension Trait where Self == Comment {
  /// Returns the trait of a test that fails if a guarantee is broken, and then shows the guarantee.
  public static func guarantee(_ guarantee: Guarantee) -> Self {
    Comment(rawValue: "\(guarantee.topic.rawValue): \(guarantee.sentence)")
  }
}
