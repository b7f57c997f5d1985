/// A group of requests that run concurrently.
///
/// ```swift
/// let profile = Multiplexer { "Ada" }
/// let scores = MultiplexerMap<String, Int> { name in name.count }
///
/// let (name, score, number) = try await Zipper(profile, scores["Ada"], Request { 3.5 }).values()
/// print(name, score, number)  // Prints "Ada 3 3.5"
/// ```
///
/// If the number of requests is known only at run time, call the same methods on an array of requests.
///
/// ## Cancellation
///
/// Cancelling the calling task cancels all requests.
///
/// ## Topics
///
/// ### Creating a zipper
/// - ``init(_:)``
/// - ``add(_:)``
///
/// ### Running the requests
/// - ``values()``
/// - ``results()``
public struct Zipper<each R: Requestable>: Sendable {
  @usableFromInline let requests: (repeat each R)

  /// Creates a zipper of requests.
  ///
  /// - Parameter request: The requests, which are not started yet.
  @inlinable
  public init(_ request: repeat each R) {
    requests = (repeat each request)
  }

  /// Returns a zipper with an additional request.
  ///
  /// - Parameter request: The request.
  /// - Returns: The longer zipper. This one is unchanged.
  public func add<New: Requestable>(_ request: New) -> Zipper<repeat each R, New> {
    Zipper<repeat each R, New>(repeat each requests, request)
  }

  /// Starts all requests at once and waits for all of them.
  ///
  /// - Returns: Their results, in order. If the calling task is cancelled, requests that have to wait fail with a
  ///   `CancellationError`.
  @inlinable
  public func results() async -> (repeat Result<(each R).Value, any Error>) {
    do {
      return try immediateResults()
    } catch {
      return await error.results()
    }
  }

  /// Starts all requests at once and waits until all have succeeded or one has failed.
  ///
  /// - Returns: Their values, in order.
  /// - Throws: The first error. The other requests are then cancelled.
  @inlinable
  public func values() async throws -> (repeat (each R).Value) {
    do {
      return try immediateValues()
    } catch {
      return try await error.values()
    }
  }

  // The following functions are not inlined into asynchronous ones, which would allocate the memory for each loop over
  // the requests from the task.

  /// Returns the values if all are available without waiting.
  ///
  /// - Throws: The requests, with the values that are available, if one is missing.
  @inlinable
  @inline(never)
  func immediateValues() throws(PendingRequests<repeat each R>) -> (repeat (each R).Value) {
    let values = (repeat (each requests).requestImmediately())
    do {
      return (repeat try Self.unwrap(each values))
    } catch {
      throw PendingRequests(repeat ZippedRequest(each requests, each values))
    }
  }

  /// Returns the results if all values are available without waiting.
  ///
  /// - Throws: The requests, with the values that are available, if one is missing.
  @inlinable
  @inline(never)
  func immediateResults() throws(PendingRequests<repeat each R>) -> (
    repeat Result<(each R).Value, any Error>
  ) {
    let values = try immediateValues()
    return (repeat .success(each values))
  }

  @inlinable
  @inline(__always)
  static func unwrap<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw CancellationError() }
    return value
  }
}

/// The requests of a zipper of which not all values are available without waiting.
@usableFromInline
final class PendingRequests<each R: Requestable>: Error {
  private let requests: (repeat ZippedRequest<each R>)

  @usableFromInline
  init(_ request: repeat ZippedRequest<each R>) {
    requests = (repeat each request)
  }

  /// Runs the requests that have no value yet, and waits for all of them.
  @usableFromInline
  func results() async -> (repeat Result<(each R).Value, any Error>) {
    await withTaskGroup(of: Void.self) { group in
      // Loops over packs have no `where` clause.
      // swift-format-ignore: UseWhereClausesInForLoops
      for request in repeat each requests {
        guard !request.hasResult else { continue }
        group.addTask { await request.receive() }
      }
    }
    return (repeat (each requests).result)
  }

  /// Runs the requests that have no value yet, until all have succeeded or one has failed.
  @usableFromInline
  func values() async throws -> (repeat (each R).Value) {
    try await withThrowingTaskGroup(of: Void.self) { group in
      // Loops over packs have no `where` clause.
      // swift-format-ignore: UseWhereClausesInForLoops
      for request in repeat each requests {
        guard !request.hasResult else { continue }
        group.addTask { try await request.receiveValue() }
      }
      // Unlike waitForAll(), which would wait for the rest before it throws.
      for try await _ in group {}
    }
    return (repeat try (each requests).result.get())
  }
}

/// A request and its result.
@usableFromInline
final class ZippedRequest<R: Requestable>: Sendable {
  private let request: R
  private let state: Locked<Result<R.Value, any Error>?>

  /// - Parameters:
  ///   - request: The request.
  ///   - value: The value, if it is available without waiting.
  @usableFromInline
  init(_ request: R, _ value: R.Value?) {
    self.request = request
    state = Locked(value.map { .success($0) })
  }

  /// Whether the request is complete.
  @usableFromInline var hasResult: Bool {
    state.withLock { $0 != nil }
  }

  /// The result, or a `CancellationError` before there is one.
  @usableFromInline var result: Result<R.Value, any Error> {
    state.withLock { $0 } ?? .failure(CancellationError())
  }

  /// Runs the request.
  @usableFromInline
  func receive() async {
    try? await receiveValue()
  }

  /// Runs the request.
  ///
  /// - Throws: The error of the request.
  @usableFromInline
  func receiveValue() async throws {
    do {
      let value = try await request.request()
      state.withLock { $0 = .success(value) }
    } catch {
      state.withLock { $0 = .failure(error) }
      throw error
    }
  }
}
