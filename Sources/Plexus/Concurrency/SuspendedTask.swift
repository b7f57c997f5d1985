/// A task that was suspended and has to be resumed exactly once.
@usableFromInline
@safe
struct SuspendedTask: Sendable {
  @usableFromInline let continuation: UnsafeContinuation<Void, Never>

  @inlinable
  init(continuation: UnsafeContinuation<Void, Never>) {
    unsafe self.continuation = continuation
  }

  /// Resumes the task.
  @inlinable
  func resume() {
    unsafe continuation.resume()
  }

  /// Suspends the current task.
  ///
  /// - Parameters:
  ///   - isolation: The isolation of the caller, which the task does not leave.
  ///   - body: A closure that stores the suspended task, or resumes it at once.
  @inlinable
  static func suspend(
    isolation: isolated (any Actor)?,
    _ body: (SuspendedTask) -> Void
  ) async {
    await unsafe withUnsafeContinuation(isolation: isolation) { continuation in
      unsafe body(SuspendedTask(continuation: continuation))
    }
  }
}
