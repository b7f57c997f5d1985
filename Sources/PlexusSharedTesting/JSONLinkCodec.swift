public import Plexus

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Events as JSON.
public struct JSONLinkCodec: LinkCodec {
  /// Creates a codec.
  public init() {}

  /// Returns the JSON of a value.
  ///
  /// - Parameter value: The value.
  /// - Returns: The bytes.
  /// - Throws: An `EncodingError`.
  public func encode(_ value: some Encodable) throws -> [UInt8] {
    [UInt8](try JSONEncoder().encode(value))
  }

  /// Returns the value of some JSON.
  ///
  /// - Parameters:
  ///   - type: The type of the value.
  ///   - bytes: The bytes.
  /// - Returns: The value.
  /// - Throws: A `DecodingError`.
  public func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
    try JSONDecoder().decode(type, from: Data(bytes))
  }
}
