// The declarations of Vapor that the articles use.

public protocol AsyncResponseEncodable {}

public protocol Content: Codable, AsyncResponseEncodable, Sendable {}

public struct PathComponent: ExpressibleByStringInterpolation, Sendable {
  public init(stringLiteral value: String) {}
}

public enum HTTPResponseStatus: Sendable {
  case badRequest, notFound
}

public struct Abort: Error {
  public init(_ status: HTTPResponseStatus) {}
}

public protocol StorageKey {
  associatedtype Value: Sendable
}

public struct Storage: Sendable {
  public subscript<Key: StorageKey>(_ key: Key.Type) -> Key.Value? {
    get { nil }
    set {}
  }
}

public final class Route: Sendable {}

public struct Parameters: Sendable {
  public func get<T: LosslessStringConvertible>(_ name: String, as type: T.Type = T.self) -> T? { nil }
}

public struct ContentContainer: Sendable {
  struct Empty: Error {}

  public func decode<D: Decodable>(_ type: D.Type) async throws -> D { throw Empty() }
}

public final class Request: Sendable {
  public let application = Application()
  public var parameters: Parameters { Parameters() }
  public var content: ContentContainer { ContentContainer() }
}

public final class Application: Sendable {
  public var storage: Storage {
    get { Storage() }
    set {}
  }

  @discardableResult
  public func get<Response: AsyncResponseEncodable>(
    _ path: PathComponent...,
    use closure: @Sendable @escaping (Request) async throws -> Response
  ) -> Route { Route() }

  @discardableResult
  public func put<Response: AsyncResponseEncodable>(
    _ path: PathComponent...,
    use closure: @Sendable @escaping (Request) async throws -> Response
  ) -> Route { Route() }
}
