/// A command as it is sent: an array of strings.
struct RedisCommand: Sendable {
  /// A word of a command.
  enum Argument: Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    case text(String)
    case number(Int64)
    case data([UInt8])

    init(stringLiteral text: String) {
      self = .text(text)
    }

    init(integerLiteral number: Int64) {
      self = .number(number)
    }
  }

  /// The name, for error messages.
  let name: String
  /// The bytes to send.
  let encoded: [UInt8]
  /// The script that it runs, if it runs one.
  let script: RedisScript?
  /// The text of the reply of a server that pairs replies with commands; `nil` if the reply depends on data.
  let mark: String?

  init(_ name: String, _ arguments: [Argument] = [], running script: RedisScript? = nil) {
    self.init(name, arguments, script, nil)
  }

  /// Creates a command whose reply is a text, which shows that no reply before it is missing or surplus.
  init(marking text: String) {
    self.init("ECHO", [.text(text)], nil, text)
  }

  private init(
    _ name: String,
    _ arguments: [Argument],
    _ script: RedisScript?,
    _ mark: String?
  ) {
    self.name = name
    self.script = script
    self.mark = mark
    var bytes: [UInt8] = []
    bytes.reserveCapacity(
      arguments.reduce(32 + name.utf8.count) { $0 + $1.byteCount + Self.overhead }
    )
    Self.append(UInt8(ascii: "*"), arguments.count + 1, to: &bytes)
    Self.append(.text(name), to: &bytes)
    for argument in arguments { Self.append(argument, to: &bytes) }
    encoded = bytes
  }

  /// The kind of the command, for a sentence about it.
  var purpose: String { script?.purpose ?? "\(name) commands" }

  /// Returns whether a reply can be that of this command; an error can answer every command.
  func admits(_ reply: RESPValue) -> Bool {
    if case .error = reply { return true }
    return mark.map { reply.bytes?.elementsEqual($0.utf8) == true } ?? true
  }

  /// The usual number of bytes around a word.
  private static let overhead = 8

  private static func append(_ argument: Argument, to bytes: inout [UInt8]) {
    append(UInt8(ascii: "$"), argument.byteCount, to: &bytes)
    switch argument {
    case .text(let text): bytes += text.utf8
    case .number(let number): bytes.append(decimal: number)
    case .data(let data): bytes += data
    }
    appendLineEnd(to: &bytes)
  }

  private static func append(_ type: UInt8, _ count: Int, to bytes: inout [UInt8]) {
    bytes.append(type)
    bytes.append(decimal: count)
    appendLineEnd(to: &bytes)
  }

  private static func appendLineEnd(to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\r"))
    bytes.append(UInt8(ascii: "\n"))
  }
}

extension RedisCommand.Argument {
  /// The number of bytes of the word.
  fileprivate var byteCount: Int {
    switch self {
    case .text(let text): return text.utf8.count
    case .number(let number):
      var count = number < 0 ? 2 : 1
      var rest = number.magnitude / 10
      while rest > 0 {
        count += 1
        rest /= 10
      }
      return count
    case .data(let data): return data.count
    }
  }
}
