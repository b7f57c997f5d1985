/// A value of RESP3, the protocol of Redis and Valkey.
///
/// Text, verbatim text and numbers without a size limit are all ``string(_:)``; arrays and sets are both
/// ``array(_:)``. Attributes are left out.
enum RESPValue: Sendable, Hashable {
  case string([UInt8])
  case integer(Int64)
  case double(Double)
  case boolean(Bool)
  case null
  indirect case error(RedisError)
  case array([RESPValue])
  /// Keys and values in turn, in the order in which the server sent them.
  case map([RESPValue])
  /// A message that answers no command.
  case push([RESPValue])
}

extension RESPValue {
  /// The bytes of a string.
  var bytes: [UInt8]? {
    if case .string(let bytes) = self { bytes } else { nil }
  }

  /// The text of a string, with damaged UTF-8 repaired.
  var text: String? {
    bytes.map { String(decoding: $0, as: UTF8.self) }
  }

  /// The number, also if the server sent it as text.
  var integer: Int64? {
    switch self {
    case .integer(let number): number
    case .string(let bytes): Int64(decimal: bytes[...])
    default: nil
    }
  }

  /// The elements of an array, a set, a map or a push.
  var elements: [RESPValue]? {
    switch self {
    case .array(let elements), .map(let elements), .push(let elements): elements
    default: nil
    }
  }
}

/// An error reply of the server.
struct RedisError: Error, Hashable, CustomStringConvertible {
  /// The first word of the reply, such as `NOSCRIPT` or `MOVED`.
  let code: String
  /// The reply, without arguments of the command.
  let description: String

  init(_ reply: some Collection<UInt8>) {
    let text = String(decoding: reply, as: UTF8.self)
    // The beginning of the arguments of an unknown command can be that of a password.
    description = text.firstRange(of: ", with args ").map { String(text[..<$0.lowerBound]) } ?? text
    code = String(description.prefix { $0 != " " })
  }
}
