// The declarations of swift-metrics that the articles use.

public final class Gauge: Sendable {
  public init(label: String, dimensions: [(String, String)] = []) {}
  public func record(_ value: some BinaryInteger) {}
  public func record(_ value: some BinaryFloatingPoint) {}
}
