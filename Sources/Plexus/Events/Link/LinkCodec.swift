/// The format in which a link carries events.
public protocol LinkCodec: Sendable {
  /// Returns the bytes of a value.
  ///
  /// - Parameter value: The value.
  /// - Returns: The bytes.
  /// - Throws: An error of the encoder.
  func encode(_ value: some Encodable) throws -> [UInt8]

  /// Returns the value that is encoded in some bytes, which are not trusted.
  ///
  /// - Parameters:
  ///   - type: The type of the value.
  ///   - bytes: The bytes.
  /// - Returns: The value.
  /// - Throws: An error if the bytes are not those of a value.
  func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value
}
