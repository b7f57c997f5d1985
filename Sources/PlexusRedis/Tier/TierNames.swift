internal import Plexus

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
/// | `{space}:nodes` | sorted set | the nodes that can have copies, by the end of their trust in ms; a member without a name at -2 |
/// | `{space}:acks` | hash | the epoch and fence that each node has acknowledged; without a name the time at which the set of nodes was lost |
/// | `{space}:fence` | string | the token of the last removal of keys or tags that all nodes acknowledge |
///
/// All of them have one hash tag, so that a cluster keeps a space in one slot. Keys and tags are composed (NFC): texts that
/// are equal in Swift are one key of the engine, however their characters are encoded.
struct TierNames: Sendable, Hashable {
  let space: String
  private let prefix: String

  /// - Precondition: The name of the space is not empty, and contains no brace, which would change the hash tag.
  init(space: String) {
    precondition(
      !space.isEmpty && !space.unicodeScalars.contains { $0 == "{" || $0 == "}" },
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

  func entry(_ key: String) -> String { name("e:", key) }
  func lease(_ key: String) -> String { name("l:", key) }
  func fetch(_ key: String) -> String { name("f:", key) }
  func tag(_ name: String) -> String { self.name("t:", name) }

  private func name(_ kind: String, _ key: String) -> String {
    prefix + kind + key.canonicalSpelling
  }

  /// Returns the space that a key of the engine belongs to.
  static func space(of name: String) -> Substring? {
    guard name.utf8.first == UInt8(ascii: "{"),
      let end = name.utf8.firstIndex(of: UInt8(ascii: "}"))
    else { return nil }
    return name[name.utf8.index(after: name.startIndex)..<end]
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
    // A key can begin with a scalar that forms a character with the one before it.
    guard name.utf8.starts(with: prefix.utf8) else { return nil }
    let rest = name.utf8.dropFirst(prefix.utf8.count)
    if rest.elementsEqual("epoch".utf8) { return .epoch }
    if rest.elementsEqual("fence".utf8) { return .fence }
    if rest.elementsEqual("acks".utf8) { return .acknowledgements }
    let key = String(Substring(rest.dropFirst(2)))
    if rest.starts(with: "e:".utf8) { return .entry(key) }
    if rest.starts(with: "l:".utf8) { return .lease(key) }
    if rest.starts(with: "t:".utf8) { return .tag(key) }
    return nil
  }
}
