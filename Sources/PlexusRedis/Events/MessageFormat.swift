internal import Plexus

/// The messages of a topic as the engine has them.
enum MessageFormat {
  /// Returns the id, the version, the origin and the type of a message, in lines.
  static func header(of message: LinkMessage) -> String {
    "\(escaped(message.id))\n\(message.version)\n\(escaped(message.origin))\n\(message.type)"
  }

  /// Returns the message with a header and a body.
  ///
  /// - Returns: `nil` if the header is not that of a message.
  static func message(header: ArraySlice<UInt8>, body: [UInt8]) -> LinkMessage? {
    // The type, which is the rest, can have line ends.
    var ends: [Int] = []
    ends.reserveCapacity(3)
    for index in header.indices where header[index] == UInt8(ascii: "\n") {
      ends.append(index)
      if ends.count == 3 { break }
    }
    guard ends.count == 3, let version = Int(decimal: header[(ends[0] + 1)..<ends[1]]) else {
      return nil
    }
    return LinkMessage(
      id: unescaped(header[..<ends[0]]),
      type: text(header[(ends[2] + 1)...]),
      version: version,
      origin: unescaped(header[(ends[1] + 1)..<ends[2]]),
      body: body
    )
  }

  /// An entry of a stream.
  struct Entry: Sendable {
    let position: LinkPosition
    let message: LinkMessage
    /// The header, if the entry is a message.
    private let header: [UInt8]?
    /// The number of bytes of all fields.
    let size: Int
    /// Whether the engine has lost messages before this one.
    let isAfterLoss: Bool

    /// Reads an entry: its id, and its fields with their values in turn.
    init?(_ value: RESPValue) {
      guard let parts = value.elements, parts.count >= 2 else { return nil }
      self.init(id: parts[0], fields: parts[1])
    }

    /// Reads an entry of a reply.
    ///
    /// - Throws: An error if it is none: without it, the message would be left out silently.
    static func read(_ value: RESPValue) throws -> Entry {
      guard let entry = Entry(value) else { throw TierError.unexpectedReply }
      return entry
    }

    /// Reads an entry.
    ///
    /// - Parameters:
    ///   - id: The id.
    ///   - fields: The fields with their values in turn.
    ///   - isTooLarge: Whether the fields are only those of the header.
    init?(id: RESPValue, fields: RESPValue, isTooLarge: Bool = false) {
      guard let position = LinkPosition(id), let fields = fields.elements
      else { return nil }
      var header: [UInt8]?
      var body: [UInt8]?
      var size = 0
      var isAfterLoss = false
      for index in stride(from: 0, to: fields.count - 1, by: 2) {
        guard let name = fields[index].bytes, let content = fields[index + 1].bytes else {
          continue
        }
        size += content.count
        guard name.count == 1 else { continue }
        switch name[0] {
        case UInt8(ascii: "h"): header = content
        case UInt8(ascii: "d"): body = content
        case UInt8(ascii: "l"): isAfterLoss = true
        default: break
        }
      }
      self.position = position
      self.size = size
      self.isAfterLoss = isAfterLoss
      let own = header.flatMap { MessageFormat.message(header: $0[...], body: body ?? []) }
      self.header = own == nil ? nil : header
      // A message that another program has written has no type, so that it is reported.
      var message =
        own
        ?? LinkMessage(id: "\(position)", type: "", version: 0, origin: "", body: body ?? [])
      if isTooLarge { message.type = "" }
      self.message = message
    }

    /// The id of the message as the engine has it, by which the engine compares messages.
    var identity: [UInt8] {
      header.map { Array($0.prefix { $0 != UInt8(ascii: "\n") }) } ?? Array("\(position)".utf8)
    }
  }

  /// Reads a message of a channel: its position, the length of its header, the header and the body.
  static func published(_ bytes: [UInt8]) -> (position: LinkPosition, message: LinkMessage)? {
    let parts = bytes.split(
      separator: UInt8(ascii: "\n"),
      maxSplits: 2,
      omittingEmptySubsequences: false
    )
    guard parts.count == 3, let position = LinkPosition(parts[0]),
      let length = Int(text(parts[1])), (0...parts[2].count).contains(length)
    else { return nil }
    let header = parts[2].prefix(length)
    return message(header: header, body: Array(parts[2].dropFirst(length)))
      .map { (position, $0) }
  }

  private static func text(_ bytes: some Collection<UInt8>) -> String {
    String(decoding: bytes, as: UTF8.self)
  }

  private static func escaped(_ text: String) -> String {
    guard text.utf8.contains(where: { $0 == UInt8(ascii: "%") || $0 == UInt8(ascii: "\n") }) else {
      return text
    }
    return text.unicodeScalars.map { scalar in
      switch scalar {
      case "%": "%25"
      case "\n": "%0A"
      default: String(scalar)
      }
    }
    .joined()
  }

  private static func unescaped(_ bytes: ArraySlice<UInt8>) -> String {
    guard bytes.contains(UInt8(ascii: "%")) else { return text(bytes) }
    // An escape can be followed by a scalar that forms a character with its last digit.
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    var rest = bytes
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.starts(with: "25".utf8) {
        result.append(UInt8(ascii: "%"))
        rest.removeFirst(2)
      } else if byte == UInt8(ascii: "%"), rest.starts(with: "0A".utf8) {
        result.append(UInt8(ascii: "\n"))
        rest.removeFirst(2)
      } else {
        result.append(byte)
      }
    }
    return text(result)
  }
}

extension LinkPosition {
  /// Reads the id of an entry of a stream.
  init?(_ id: RESPValue) {
    guard let bytes = id.bytes else { return nil }
    self.init(bytes[...])
  }

  init?(_ id: ArraySlice<UInt8>) {
    guard let dash = id.firstIndex(of: UInt8(ascii: "-")),
      let epoch = UInt64(decimal: id[..<dash]),
      let number = UInt64(decimal: id[(dash + 1)...])
    else { return nil }
    self.init(epoch: epoch, number: number)
  }
}
