/// An encoded event that is sent between processes.
public struct LinkMessage: Hashable, Sendable {
  /// The unique id of the message.
  ///
  /// It stays the same when the message is delivered again.
  public var id: String
  /// The name of the event type, which all processes share.
  public var type: String
  /// The version of the format of the body.
  public var version: Int
  /// The bus or messenger that has published the message.
  public var origin: String
  /// The encoded event.
  public var body: [UInt8]

  /// Creates a message.
  ///
  /// - Parameters:
  ///   - id: The unique id of the message.
  ///   - type: The name of the event type.
  ///   - version: The version of the format of the body.
  ///   - origin: The bus or messenger that publishes the message.
  ///   - body: The encoded event.
  public init(id: String, type: String, version: Int, origin: String, body: [UInt8]) {
    self.id = id
    self.type = type
    self.version = version
    self.origin = origin
    self.body = body
  }
}
