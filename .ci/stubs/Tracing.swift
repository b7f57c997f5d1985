// The declarations of swift-distributed-tracing that the articles use.

public protocol SpanAttributeConvertible: Sendable {}

extension Int: SpanAttributeConvertible {}

public struct SpanAttributes: Sendable {
  public subscript<T: SpanAttributeConvertible>(_ name: String) -> T? {
    get { nil }
    set {}
  }
}

public protocol Span: Sendable {
  var attributes: SpanAttributes { get nonmutating set }
}

private struct NoSpan: Span {
  var attributes: SpanAttributes {
    get { SpanAttributes() }
    nonmutating set {}
  }
}

public func withSpan<T>(
  _ operationName: String,
  isolation: isolated (any Actor)? = #isolation,
  _ operation: (any Span) async throws -> T
) async rethrows -> T {
  try await operation(NoSpan())
}
