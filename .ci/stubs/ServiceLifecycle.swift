// The declarations of swift-service-lifecycle that the articles use.

public protocol Service: Sendable {
  func run() async throws
}

public func gracefulShutdown() async throws {}
