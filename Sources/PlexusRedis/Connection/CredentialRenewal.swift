internal import PlexusSupport

/// The renewal of a connection's credentials before they expire.
final class CredentialRenewal: Sendable {
  private let task = Locked<Task<Void, Never>?>(nil)

  /// Renews credentials until the connection ends.
  ///
  /// - Parameters:
  ///   - expires: The time at which the present ones expire.
  ///   - renew: Replaces the credentials, and returns when the new ones expire; `nil` for never. If it throws, it is called
  ///     again after a second.
  func begin(
    before expires: ContinuousClock.Instant,
    _ renew: @escaping @concurrent @Sendable () async throws -> ContinuousClock.Instant?
  ) {
    let new = Task.detached {
      var next: ContinuousClock.Instant? = .now + Self.pause(before: expires)
      while let time = next, (try? await Task.sleep(until: time, clock: .continuous)) != nil {
        do {
          next = try await renew().map { .now + Self.pause(before: $0) }
        } catch {
          next = .now + .seconds(1)
        }
      }
    }
    task.withLock { task in
      defer { task = new }
      return task
    }?.cancel()
  }

  /// Ends the renewal.
  func end() {
    task.withLock { $0.take() }?.cancel()
  }

  /// Returns the time after which credentials are replaced.
  private static func pause(before expires: ContinuousClock.Instant) -> Duration {
    max(ContinuousClock.now.duration(to: expires) * 4 / 5, .milliseconds(100))
  }
}
