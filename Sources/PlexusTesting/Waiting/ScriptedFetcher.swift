internal import PlexusSupport

/// A fetcher that returns predefined results in order.
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
/// The last step is repeated, so `ScriptedFetcher([.success(1)])` returns the same result for every fetch.
/// ``count`` is the number of fetches that have begun: a test that permits two asserts
/// `#expect(server.count == 2)`.
///
/// A fetcher can be used from any number of threads and tasks at once; each call takes its own step. With
/// a gate, a fetch takes its step when it begins and then waits at the gate, so a test can detect that the
/// fetch is in flight and control when it ends.
///
/// ## Topics
///
/// ### Creating a fetcher
/// - ``init(_:gate:)``
///
/// ### Fetching
/// - ``fetch()``
/// - ``count``
public final class ScriptedFetcher<Value: Sendable>: Sendable {
  private let steps: [Result<Value, any Error>]
  private let gate: Gate?
  private let calls = Locked(0)

  /// Creates a fetcher with predefined results.
  ///
  /// - Parameters:
  ///   - steps: The results, in the order of the fetches. The last one is repeated.
  ///   - gate: A gate at which every fetch waits before it returns, if any.
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
  /// - Throws: The error of the step, or `CancellationError` if the calling task is cancelled at the gate.
  ///   Without a gate, cancellation has no effect.
  public func fetch() async throws -> Value {
    let call = calls.withLock { calls in
      calls += 1
      return calls
    }
    try await gate?.wait()
    return try steps[min(call, steps.count) - 1].get()
  }
}
