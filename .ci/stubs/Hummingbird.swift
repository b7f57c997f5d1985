// The declarations of Hummingbird that the articles use.

public protocol ResponseGenerator {}

public protocol ResponseEncodable: Encodable, ResponseGenerator {}

public struct Request: Sendable {}

public struct Parameters: Sendable {
  struct Missing: Error {}

  public func require<T: LosslessStringConvertible>(_ name: String, as type: T.Type) throws -> T {
    throw Missing()
  }
}

public protocol RequestContext: Sendable {
  var parameters: Parameters { get }
}

public struct BasicRequestContext: RequestContext {
  public var parameters: Parameters { Parameters() }
}

public struct RouterPath: ExpressibleByStringInterpolation, Sendable {
  public init(stringLiteral value: String) {}
}

public final class Router<Context: RequestContext> {
  public init(context: Context.Type = BasicRequestContext.self) {}

  @discardableResult
  public func get(
    _ path: RouterPath = "",
    use handler: @Sendable @escaping (Request, Context) async throws -> some ResponseGenerator
  ) -> Self { self }
}
