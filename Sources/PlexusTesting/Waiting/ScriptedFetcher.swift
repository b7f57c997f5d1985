internal import PlexusSupport

/// A source that answers from a script: the first fetch gets the first result, and so on.
///
/// ```swift
/// struct Offline: Error {}
///
/// let server = ScriptedFetcher<Int>([.success(1), .failure(Offline()), .success(2)])
/// let first = try await server.fetch()
/// let second = try? await server.fetch()
/// let third = try await server.fetch()
/// ```
///
/// After the last step the fetcher repeats it, so that `ScriptedFetcher([.success(1)])` answers
/// every fetch alike. How many there were is ``count``: a test that allows two says
/// `#expect(server.count == 2)`.
///
/// A fetcher may be used from any number of threads and tasks at once; every call takes a step of
/// its own. With a gate, a fetch takes its step when it begins and then waits at the gate, so that
/// a test knows that it is under way and decides when it ends.
public final class ScriptedFetcher<Value: Sendable>: Sendable {
  private let steps: [Result<Value, any Error>]
  private let gate: Gate?
  private let calls = Locked(0)

  /// Creates a fetcher with a script.
  ///
  /// - Parameters:
  ///   - steps: The result of the first fetch, of the second, and so on. The last one is repeated.
  ///   - gate: Where every fetch waits before it returns; `nil` if it returns at once.
  /// - Precondition: There is at least one step.
  public init(_ steps: [Result<Value, any Error>], gate: Gate? = nil) {
    precondition(!steps.isEmpty, "A scripted fetcher needs at least one step")
    self.steps = steps
    self.gate = gate
  }

  /// The number of fetches that have begun.
  public var count: Int { calls.withLock { $0 } }

  /// Takes the next step of the script.
  ///
  /// - Returns: The value of the step.
  /// - Throws: The error of the step; `CancellationError` if the calling task is cancelled at the
  ///   gate. Without a gate, cancellation changes nothing.
  public func fetch() async throws -> Value {
    let call = calls.withLock { calls in
      calls += 1
      return calls
    }
    try await gate?.wait()
    return try steps[min(call, steps.count) - 1].get()
  }
}
