/// A request made of a closure.
///
/// It remembers nothing: every call of ``request()`` runs the closure again. It brings any work into a ``Zipper``,
/// and hides what is asked: an array can hold requests of entries of different maps.
///
/// ```swift
/// let dice = Request { Int.random(in: 1...6) }
/// let number = try await dice.request()
/// print(number)
/// ```
///
/// ## Cancellation
///
/// The closure runs as part of the calling task, off its actor. It is told of a cancellation as
/// every asynchronous function is.
public struct Request<Value: Sendable>: Requestable {
  @usableFromInline let operation: @concurrent @Sendable () async throws -> Value
  /// Gets the value if it is in memory.
  @usableFromInline let lookUp: (@Sendable () -> Value?)?

  /// Creates a request that runs a closure.
  ///
  /// - Parameter operation: What gets the value. It is released with the request.
  public init(_ operation: @escaping @concurrent @Sendable () async throws -> Value) {
    self.operation = operation
    lookUp = nil
  }

  /// Creates a request of something that can be requested, such as a key of a ``MultiplexerMap``.
  ///
  /// - Parameter requestable: What to ask.
  @inlinable
  public init(_ requestable: some Requestable<Value>) {
    operation = { try await requestable.request() }
    lookUp = { requestable.requestImmediately() }
  }

  /// Runs the closure.
  ///
  /// - Returns: What the closure returns.
  /// - Throws: The error of the closure.
  public func request() async throws -> Value {
    try await operation()
  }

  /// Returns the value of a key that is fresh in memory; always `nil` for a request made
  /// of a closure.
  ///
  /// - Returns: The value, if there is no need to wait for it.
  @inlinable
  public func requestImmediately() -> Value? {
    lookUp?()
  }
}
