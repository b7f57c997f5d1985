internal import Plexus
internal import PlexusSupport

/// The keys of a space in the engine, as a schema sees them.
///
/// | Key | Type | Content |
/// |---|---|---|
/// | `{space}:2:epoch` | string | the epoch |
/// | `{space}:2:tokens` | string | the number of tokens given out |
/// | `{space}:2:schemas` | string | the longest trust of a node in ms, `/name` of the server's run that was noted last, `:from-to` for the tokens that were skipped after each restart, the last one first, then `schema=time` for each schema: until then, it can have entries and leases |
/// | `{space}:2:e:schema:key` | hash | an entry: `e` epoch, `v` token, `t` time of the engine in ms, `d` payload, `o` token that outdates it |
/// | `{space}:2:l:schema:key` | string | a lease: `epoch node/length:token`, the length in ms; unless it was renewed, it ends a day before the key expires |
/// | `{space}:2:f:schema:key` | hash | a fetch: `v` token and `d` payload of a failure and `x` its end in ms, `l` token of a renewed lease and `u` its renewal: its end in ms, or a higher number |
/// | `{space}:2:t:tag` | string | a tag: `epoch token`; entries with smaller tokens are not valid |
/// | `{space}:2:nodes` | sorted set | the nodes that can have copies, by the time for which they trust them in ms; a member without a name at -2 |
/// | `{space}:2:acks` | hash | the nonce of the last heartbeat of each node, and the epoch and fence that it has acknowledged; without a name the nonce under which a loss of the nodes was noted |
/// | `{space}:2:fence` | string | the token of the last removal of keys or tags that all nodes acknowledge |
///
/// All of them have one hash tag, so that a cluster keeps a space in one slot. Names of spaces, keys and tags are composed
/// (NFC): texts that are equal in Swift are one key of the engine, however their characters are encoded.
///
/// The number in the names is the version of this layout. A process uses the keys of its own layout only, so that
/// processes with different versions of the library share nothing, and harm nothing of each other.
struct TierNames: Sendable, Hashable {
  /// The version of the layout: another one for keys that older versions of the library would misunderstand.
  private static let layout = "2"

  let space: String
  /// The schema, as names contain it.
  let schema: String
  private let prefix: String

  /// - Parameters:
  ///   - space: The name of the space.
  ///   - schema: The schema of the entries, which can be any text.
  /// - Precondition: The name of the space is not empty, and contains no brace, which would change the hash tag.
  init(space: String, schema: String) {
    precondition(
      !space.isEmpty && !space.unicodeScalars.contains { $0 == "{" || $0 == "}" },
      "The name of a space must not be empty or contain braces"
    )
    self.space = space.canonicalSpelling
    self.schema = Self.escaped(schema)
    prefix = "{\(self.space)}:\(Self.layout):"
  }

  var epoch: String { prefix + "epoch" }
  var tokens: String { prefix + "tokens" }
  var schemas: String { prefix + "schemas" }
  var nodes: String { prefix + "nodes" }
  var acknowledgements: String { prefix + "acks" }
  var fence: String { prefix + "fence" }

  func entry(_ key: String) -> String { entry(key, in: schema) }
  func lease(_ key: String) -> String { lease(key, in: schema) }
  func fetch(_ key: String) -> String { fetch(key, in: schema) }

  // The keys of a schema, as names contain it.
  func entry(_ key: String, in schema: String) -> String { name("e:", schema, key) }
  func lease(_ key: String, in schema: String) -> String { name("l:", schema, key) }
  func fetch(_ key: String, in schema: String) -> String { name("f:", schema, key) }

  func tag(_ name: String) -> String { prefix + "t:" + name.canonicalSpelling }

  private func name(_ kind: String, _ schema: String, _ key: String) -> String {
    prefix + kind + schema + ":" + key.canonicalSpelling
  }

  /// Returns a schema as names contain it: without the characters that separate it from others.
  private static func escaped(_ schema: String) -> String {
    var text = ""
    for byte in schema.canonicalSpelling.utf8 {
      let scalar = Unicode.Scalar(byte)
      if isPlain(scalar) {
        text.unicodeScalars.append(scalar)
      } else {
        text += (byte < 16 ? "%0" : "%") + String(byte, radix: 16, uppercase: true)
      }
    }
    return text.isEmpty ? "%" : text
  }

  private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "a"..."z", "A"..."Z", "0"..."9", ".", "_", "-": true
    default: false
    }
  }

  /// Reads the schemas of a space.
  ///
  /// - Returns: The schemas, as names contain them.
  static func schemas(in list: String) -> [String] {
    list.split(separator: " ").dropFirst().compactMap { item in
      guard let end = item.firstIndex(of: "=") else { return nil }
      let schema = item[..<end]
      let isSchema = schema.unicodeScalars.allSatisfy { $0 == "%" || isPlain($0) }
      return isSchema ? String(schema) : nil
    }
  }

  /// Reads the name of the server's run that was noted last, which is in front of the schemas of a space.
  ///
  /// - Returns: The name, nothing for none; `nil` for no list.
  static func lastRun(in list: String) -> String? {
    let head = list.prefix { $0 != " " && $0 != ":" }
    let parts = head.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard UInt64(parts[0]) != nil else { return nil }
    return parts.count > 1 ? String(parts[1]) : ""
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

  /// Returns the meaning of a key of the engine, if it belongs to the space and the schema, and its changes are announced.
  func subject(of name: String) -> Subject? {
    // A key can begin with a scalar that forms a character with the one before it.
    guard name.utf8.starts(with: prefix.utf8) else { return nil }
    let rest = name.utf8.dropFirst(prefix.utf8.count)
    if rest.elementsEqual("epoch".utf8) { return .epoch }
    if rest.elementsEqual("fence".utf8) { return .fence }
    if rest.elementsEqual("acks".utf8) { return .acknowledgements }
    let content = rest.dropFirst(2)
    if rest.starts(with: "t:".utf8) { return .tag(String(Substring(content))) }
    guard content.starts(with: schema.utf8),
      content.dropFirst(schema.utf8.count).first == UInt8(ascii: ":")
    else { return nil }
    let key = String(Substring(content.dropFirst(schema.utf8.count + 1)))
    if rest.starts(with: "e:".utf8) { return .entry(key) }
    if rest.starts(with: "l:".utf8) { return .lease(key) }
    return nil
  }
}
