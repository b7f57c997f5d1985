/// Several requests that are made at once.
///
/// ```swift
/// let profile = Multiplexer { "Ada" }
/// let scores = MultiplexerMap<String, Int> { name in name.count }
///
/// let (name, score, number) = try await Zipper(profile, scores["Ada"], Request { 3.5 }).values()
/// print(name, score, number)
/// ```
///
/// For a list whose length is known at run time only, an array of requests has the same methods.
///
/// ## Cancellation
///
/// Cancelling the calling task cancels all requests.
public struct Zipper<each R: Requestable>: Sendable {
  @usableFromInline let requests: (repeat each R)

  /// Creates a zipper of requests.
  ///
  /// - Parameter request: The requests; nothing is asked for yet.
  @inlinable
  public init(_ request: repeat each R) {
    requests = (repeat each request)
  }

  /// Returns a zipper with one more request at the end.
  ///
  /// - Parameter request: The request to add.
  /// - Returns: The longer zipper. This one stays as it is.
  public func add<New: Requestable>(_ request: New) -> Zipper<repeat each R, New> {
    Zipper<repeat each R, New>(repeat each requests, request)
  }

  /// Makes all requests at once and waits for every one of them.
  ///
  /// - Returns: Their results, in the order in which they were added. If the calling task is cancelled
  ///   those that had to wait have failed with a `CancellationError`.
  @inlinable
  public func results() async -> (repeat Result<(each R).Value, any Error>) {
    let immediate = (repeat (each requests).requestImmediately())
    if Self.areComplete(repeat each immediate) {
      return (repeat Result { try Self.unwrap(each immediate) })
    }
    let zipped = (repeat ZippedRequest(each requests, each immediate))
    await withTaskGroup(of: Void.self) { group in
      // Loops over packs have no `where` clause.
      // swift-format-ignore: UseWhereClausesInForLoops
      for request in repeat each zipped {
        guard !request.hasResult else { continue }
        group.addTask { await request.receive() }
      }
    }
    return (repeat (each zipped).result)
  }

  /// Makes all requests at once and waits until all have succeeded or one has failed.
  ///
  /// - Returns: Their values, in the order in which they were added.
  /// - Throws: The first error. The other requests are cancelled then.
  @inlinable
  public func values() async throws -> (repeat (each R).Value) {
    let immediate = (repeat (each requests).requestImmediately())
    if Self.areComplete(repeat each immediate) {
      return (repeat try Self.unwrap(each immediate))
    }
    let zipped = (repeat ZippedRequest(each requests, each immediate))
    try await withThrowingTaskGroup(of: Void.self) { group in
      // Loops over packs have no `where` clause.
      // swift-format-ignore: UseWhereClausesInForLoops
      for request in repeat each zipped {
        guard !request.hasResult else { continue }
        group.addTask { try await request.receiveValue() }
      }
      // Unlike waitForAll(), which would wait for the rest before it throws.
      for try await _ in group {}
    }
    return (repeat try (each zipped).result.get())
  }

  /// Whether each of the values is there.
  @inlinable
  @inline(__always)
  static func areComplete<each Value>(_ value: repeat (each Value)?) -> Bool {
    var areComplete = true
    for value in repeat each value { areComplete = areComplete && value != nil }
    return areComplete
  }

  @inlinable
  @inline(__always)
  static func unwrap<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw CancellationError() }
    return value
  }
}

/// A request and, in the end, its result.
@usableFromInline
final class ZippedRequest<R: Requestable>: Sendable {
  private let request: R
  private let state: Locked<Result<R.Value, any Error>?>

  /// - Parameters:
  ///   - request: The request.
  ///   - value: Its value, if it did not have to be waited for.
  @usableFromInline
  init(_ request: R, _ value: R.Value?) {
    self.request = request
    state = Locked(value.map { .success($0) })
  }

  /// Whether nothing is left to be done.
  @usableFromInline var hasResult: Bool {
    state.withLock { $0 != nil }
  }

  /// The result; a `CancellationError` as long as there is none.
  @usableFromInline var result: Result<R.Value, any Error> {
    state.withLock { $0 } ?? .failure(CancellationError())
  }

  /// Makes the request.
  @usableFromInline
  func receive() async {
    try? await receiveValue()
  }

  /// Makes the request.
  ///
  /// - Throws: What the request throws.
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
