/// Bytes of a server that are not RESP3, exceed a limit, or answer no command.
///
/// Nothing after such bytes can be used: the connection has to be closed.
enum RESPError: Error, Hashable, CustomStringConvertible {
  case unknownType(UInt8)
  case malformedNumber
  case malformedBoolean
  case missingLineEnd
  case lineTooLong
  case nestedTooDeeply
  case tooLarge
  case unrequestedReply

  var description: String {
    switch self {
    case .unknownType(let byte):
      "A reply begins with the byte \(byte), which RESP3 does not define. Is the port that of a Redis server?"
    case .malformedNumber: "A number in a reply is not decimal, or does not fit into 64 bits."
    case .malformedBoolean: "A boolean in a reply is neither t nor f."
    case .missingLineEnd: "A line or a string in a reply does not end with CR LF."
    case .lineTooLong: "A line of a reply is longer than \(RESPParser.longestLine) bytes."
    case .nestedTooDeeply: "A reply is nested more than \(RESPParser.greatestDepth) levels deep."
    case .tooLarge: "A reply needs more memory than the connection allows."
    case .unrequestedReply: "The server sent a reply that answers no command."
    }
  }
}
