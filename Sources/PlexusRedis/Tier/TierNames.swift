/// The keys of a space in the engine.
///
/// | Key | Type | Content |
/// |---|---|---|
/// | `{space}:epoch` | string | the epoch |
/// | `{space}:tokens` | string | the number of tokens given out |
/// | `{space}:e:key` | hash | an entry: `e` epoch, `v` token, `t` time of the engine in ms, `s` schema, `d` payload, `o` token that outdates it; without `d` a tombstone |
/// | `{space}:l:key` | string | a lease: `epoch node:token`; it ends an hour before the key expires, unless it was renewed |
/// | `{space}:f:key` | hash | a fetch: `v` token and `d` payload of a failure, `l` token of a renewed lease and `u` its end in ms |
/// | `{space}:t:tag` | string | a tag: `epoch token`; entries with smaller tokens are not valid |
/// | `{space}:nodes` | sorted set | the nodes that can have copies, by the end of their trust in ms |
/// | `{space}:acks` | hash | the epoch and fence that each node has acknowledged |
/// | `{space}:fence` | string | the token of the last removal of keys or tags that all nodes acknowledge |
///
/// All of them have one hash tag, so that a cluster keeps a space in one slot.
struct TierNames: Sendable, Hashable {
  let space: String
  private let prefix: String

  /// - Precondition: The name of the space is not empty, and contains no brace, which would change the hash tag.
  init(space: String) {
    precondition(
      !space.isEmpty && !space.contains { $0 == "{" || $0 == "}" },
      "The name of a space must not be empty or contain braces"
    )
    self.space = space
    prefix = "{\(space)}:"
  }

  var epoch: String { prefix + "epoch" }
  var tokens: String { prefix + "tokens" }
  var nodes: String { prefix + "nodes" }
  var acknowledgements: String { prefix + "acks" }
  var fence: String { prefix + "fence" }

  func entry(_ key: String) -> String { prefix + "e:" + key }
  func lease(_ key: String) -> String { prefix + "l:" + key }
  func fetch(_ key: String) -> String { prefix + "f:" + key }
  func tag(_ name: String) -> String { prefix + "t:" + name }

  /// Returns the space that a key of the engine belongs to.
  static func space(of name: String) -> Substring? {
    guard name.first == "{", let end = name.firstIndex(of: "}") else { return nil }
    return name[name.index(after: name.startIndex)..<end]
  }

  /// The meaning of a key of the engine.
  enum Subject: Hashable, Sendable {
    case epoch
    case fence
    case entry(String)
    case lease(String)
    case tag(String)
    /// The epochs and fences that nodes have acknowledged.
    case acknowledgements
  }

  /// Returns the meaning of a key of the engine, if it belongs to the space and its changes are announced.
  func subject(of name: String) -> Subject? {
    guard name.utf8.starts(with: prefix.utf8) else { return nil }
    let rest = String(name.dropFirst(prefix.count))
    if rest == "epoch" { return .epoch }
    if rest == "fence" { return .fence }
    if rest == "acks" { return .acknowledgements }
    if rest.hasPrefix("e:") { return .entry(String(rest.dropFirst(2))) }
    if rest.hasPrefix("l:") { return .lease(String(rest.dropFirst(2))) }
    if rest.hasPrefix("t:") { return .tag(String(rest.dropFirst(2))) }
    return nil
  }
}
