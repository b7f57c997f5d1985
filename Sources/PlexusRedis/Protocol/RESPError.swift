/// Bytes of a server that are not RESP3, exceed a limit, answer no command, or answer another one.
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
  case shiftedReply

  /// A clause for the reason of a ``RedisConnectionError``, without a capital and a period.
  var description: String {
    switch self {
    case .unknownType(let byte):
      """
      a reply begins with the byte \(byte), which RESP3 does not define; the port may not be that of a Redis server
      """
    case .malformedNumber: "a number in a reply is not decimal, or does not fit into 64 bits"
    case .malformedBoolean: "a boolean in a reply is neither t nor f"
    case .missingLineEnd: "a line or a string in a reply does not end with CR LF"
    case .lineTooLong: "a line of a reply is longer than \(RESPParser.longestLine) bytes"
    case .nestedTooDeeply: "a reply is nested more than \(RESPParser.greatestDepth) levels deep"
    case .tooLarge: "a reply needs more memory than the connection allows"
    case .unrequestedReply: "the server sent a reply that answers no command"
    case .shiftedReply: "the server sent a reply that belongs to another command"
    }
  }
}
