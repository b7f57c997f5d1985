/// A type that fetches a piece of data and publishes its loading state.
///
/// A conforming type provides a publisher and a fetch. The protocol adds subscribing, refreshing and logging out.
///
/// ```swift
/// struct ProfileManager: DataManager {
///   let publisher = DataPublisher<Profile>(staleAfter: .seconds(300))
///
///   func fetch() async throws -> Profile {
///     try await backend.fetchProfile()
///   }
/// }
///
/// let manager = ProfileManager()
/// let states = manager.subscribe()
/// try await manager.refreshIfNeeded()
/// manager.logOut()
/// ```
///
/// An actor conforms with a `nonisolated let` as its publisher. So does a class on the main actor, which also
/// declares `@MainActor func fetch()`, because the requirement is not isolated.
///
/// ## Topics
///
/// ### Conforming
/// - ``publisher``
/// - ``fetch()``
///
/// ### Using the data
/// - ``subscribe(bufferingPolicy:)``
/// - ``refreshIfNeeded()``
/// - ``refresh()``
/// - ``logOut()``
public protocol DataManager<Value>: Sendable {
  /// The type of the data.
  associatedtype Value: Sendable

  /// The publisher of the data, which must always be the same one.
  var publisher: DataPublisher<Value> { get }

  /// Fetches the data.
  ///
  /// ``refresh()`` and ``refreshIfNeeded()`` call this method, at most once at a time and in a task of its own. It does
  /// not need to publish anything.
  ///
  /// - Returns: The data.
  /// - Throws: The error of the fetch.
  func fetch() async throws -> Value
}

extension DataManager {
  /// Registers a subscriber, which receives the current state of the data and then every change.
  ///
  /// Subscribing does not fetch.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling the task that iterates it ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> AsyncStream<LoadState<Value>> {
    publisher.subscribe(bufferingPolicy: bufferingPolicy)
  }

  /// Fetches and publishes the data, or joins the fetch in flight.
  ///
  /// As for ``DataPublisher/load(_:)``, a result that arrives after ``logOut()`` is not published, and cancelling the
  /// last caller cancels the fetch.
  ///
  /// - Returns: The data.
  /// - Throws: The error of the fetch, or a `CancellationError` if the calling task is cancelled.
  @discardableResult
  public nonisolated func refresh() async throws -> Value {
    try await publisher.load { try await fetch() }
  }

  /// Fetches the data if it is unknown, failed or stale.
  ///
  /// - Returns: The loaded data, or the new one.
  /// - Throws: The same errors as ``refresh()``.
  @discardableResult
  public nonisolated func refreshIfNeeded() async throws -> Value {
    try await publisher.loadIfNeeded { try await fetch() }
  }

  /// Drops the data of the user and publishes `.unknown`.
  ///
  /// The data is inaccessible before subscribers are notified, and a fetch in flight is not published.
  public nonisolated func logOut() {
    publisher.reset()
  }
}
