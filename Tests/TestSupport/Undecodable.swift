/// The error of a decoder in a test that refuses its data.
public struct Undecodable: Error, Hashable {
  /// Creates an error.
  public init() {}
}
