/// A request that calls a closure.
///
/// Every call of ``request()`` runs the closure again. Use it for other work in a ``Zipper``, and to erase the types of
/// requests, for example to store entries of different maps in one array.
///
/// ```swift
/// let dice = Request { Int.random(in: 1...6) }
/// let number = try await dice.request()
/// print(number)
/// ```
///
/// ## Cancellation
///
/// The closure runs in the calling task, off its actor, and is cancelled with that task.
public struct Request<Value: Sendable>: Requestable {
  @usableFromInline let operation: @concurrent @Sendable () async throws -> Value
  /// Returns the value if it is in memory.
  @usableFromInline let lookUp: (@Sendable () -> Value?)?

  /// Creates a request that calls a closure.
  ///
  /// - Parameter operation: Returns the value. It is released with the request.
  public init(_ operation: @escaping @concurrent @Sendable () async throws -> Value) {
    self.operation = operation
    lookUp = nil
  }

  /// Creates a request that wraps another one, such as a key of a ``MultiplexerMap``.
  ///
  /// - Parameter requestable: The request to wrap.
  @inlinable
  public init(_ requestable: some Requestable<Value>) {
    operation = { try await requestable.request() }
    lookUp = { requestable.requestImmediately() }
  }

  /// Calls the closure.
  ///
  /// - Returns: The result of the closure.
  /// - Throws: The error of the closure.
  public func request() async throws -> Value {
    try await operation()
  }

  /// Returns a fresh value of the wrapped request from memory; always `nil` for a closure.
  ///
  /// - Returns: The value, if it is available without waiting.
  @inlinable
  public func requestImmediately() -> Value? {
    lookUp?()
  }
}
