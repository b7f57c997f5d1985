/// Something that knows how to fetch a piece of data, and tells what is known of it.
///
/// A conforming type says where the data is published and how it is fetched; subscribing, refreshing
/// and logging out come with it.
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
/// An actor conforms with a `nonisolated let` as its publisher. So does a class on the main actor, which
/// also writes `@MainActor func fetch()`: a requirement that belongs to no actor takes that from it
/// otherwise.
public protocol DataManager<Value>: Sendable {
  /// The data.
  associatedtype Value: Sendable

  /// Where the state of the data is published. It is always the same one.
  var publisher: DataPublisher<Value> { get }

  /// Fetches the data, anew each time.
  ///
  /// It is called by ``refresh()`` and ``refreshIfNeeded()``, at most once at a time and apart from the
  /// caller's task, and need not publish anything itself.
  ///
  /// - Returns: The data.
  /// - Throws: Why there is none.
  func fetch() async throws -> Value
}

extension DataManager {
  /// Registers a subscriber and returns the current state of the data and those that follow.
  ///
  /// Nothing is fetched by that.
  ///
  /// - Parameter bufferingPolicy: The policy for elements that the subscriber has not read yet.
  /// - Returns: The stream. Dropping it or cancelling its task ends the subscription.
  public nonisolated func subscribe(
    bufferingPolicy: BufferingPolicy<LoadState<Value>> = .bufferingNewest(1)
  ) -> AsyncStream<LoadState<Value>> {
    publisher.subscribe(bufferingPolicy: bufferingPolicy)
  }

  /// Fetches the data and publishes it, or joins the fetch that is under way.
  ///
  /// The rules are those of ``DataPublisher/load(_:)``: a result that arrives after ``logOut()`` is not
  /// published, and the last caller that is cancelled takes the fetch with it.
  ///
  /// - Returns: The data.
  /// - Throws: The error of the fetch, or a `CancellationError` if the calling task is cancelled.
  @discardableResult
  public nonisolated func refresh() async throws -> Value {
    try await publisher.load { try await fetch() }
  }

  /// Fetches the data only if it is unknown, has failed or is stale.
  ///
  /// - Returns: The loaded data that there was, or the new one.
  /// - Throws: As ``refresh()``.
  @discardableResult
  public nonisolated func refreshIfNeeded() async throws -> Value {
    try await publisher.loadIfNeeded { try await fetch() }
  }

  /// Forgets the data of the user who leaves, and publishes `.unknown`.
  ///
  /// Nobody can reach the data any more when subscribers learn of it, and a fetch that is under way
  /// will not be published.
  public nonisolated func logOut() {
    publisher.reset()
  }
}
