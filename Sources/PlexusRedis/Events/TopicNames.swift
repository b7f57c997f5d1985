internal import Plexus
internal import PlexusSupport

/// The keys and the channel of a topic in the engine.
///
/// | Key | Type | Content |
/// |---|---|---|
/// | `{topic}:stream` | stream | the messages: `h` id, version, origin and type in lines, `d` body, `r` reason of a dead letter, `f` all fields of a dead letter that has more than 1,000 as MessagePack, `l` if messages before it were lost |
/// | `{topic}:sent:node` | hash | the first positions of the latest batches of a node, by their number modulo 16,384 |
/// | `{topic}:released:group` | string | changes when a reader of the group gives messages back |
/// | `{topic}:channel` | channel | messages for ephemeral readers, as they are published |
///
/// The dead letters of a group, `topic.dead.group`, are a topic whose keys begin with `{topic}.dead.group:`: a cluster has them
/// in the slot of the topic, so that a message becomes a dead letter in one step.
///
/// Topics and groups are composed (NFC): texts that are equal in Swift are one topic or group of the engine, however their
/// characters are encoded.
struct TopicNames: Hashable, Sendable {
  /// The number of batches of a node whose positions the engine remembers.
  static let remembered: UInt64 = 16_384
  /// The time for which it remembers them after the latest one.
  static let memory: Nanoseconds = 600 * 1_000_000_000

  private let prefix: String

  /// The text between a topic and the group of its dead letters.
  private static let deadMark = Array(".dead.".unicodeScalars)

  /// - Parameter topic: Any text. Braces are escaped, because they would change the hash tag, and an empty text is none.
  init(_ topic: String) {
    let scalars = Array(topic.canonicalSpelling.unicodeScalars)
    let mark = scalars.firstRange(of: Self.deadMark)?.lowerBound ?? 0
    let end = mark > 0 ? mark : scalars.count
    let tag = scalars.isEmpty ? "%" : Self.escaped(scalars[..<end])
    prefix = "{\(tag)}\(Self.escaped(scalars[end...], "%3A")):"
  }

  /// Returns a text without the characters that separate it from others.
  ///
  /// - Parameters:
  ///   - scalars: The text.
  ///   - colon: The spelling of a colon, which separates what is not in braces.
  /// - Returns: The text.
  private static func escaped(
    _ scalars: some Sequence<Unicode.Scalar>,
    _ colon: String = ":"
  ) -> String {
    var text = ""
    for scalar in scalars {
      switch scalar {
      case "%": text += "%25"
      case "{": text += "%7B"
      case "}": text += "%7D"
      case ":": text += colon
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text
  }

  /// The end of the names of streams.
  static let streamSuffix = ":stream"

  var stream: String { prefix + "stream" }
  var channel: String { prefix + "channel" }

  func released(by group: String) -> String { prefix + "released:" + group.canonicalSpelling }

  func sent(by node: String) -> String { prefix + "sent:" + node }
}
