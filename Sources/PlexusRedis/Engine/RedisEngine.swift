public import Plexus

/// A Redis or Valkey server that the caches and event buses of several processes share.
///
/// ```swift
/// import Plexus
/// import PlexusRedis
///
/// func makeUsers(on engine: RedisEngine) -> MultiplexerMap<Int, String> {
///   MultiplexerMap(id: "users", cacher: engine.cacher(space: "users", schema: "1")) { id in
///     "user \(id)"
///   }
/// }
/// ```
///
/// All processes together fetch a key once: one of them obtains the lease and fetches, and the server notifies the
/// others. Copies in memory are invalidated by the server's client-side caching, and used only while the server
/// answers: ``RedisOptions/nearLease``. <doc:caching-across-processes> describes the guarantees.
///
/// One engine serves all caches of a process over one pipelined connection, which reconnects whenever it breaks, and
/// all of its event buses over another one: ``events``. Caches need a server of version 6 or later, events version 7.
///
/// ## Topics
///
/// ### Creating an engine
/// - ``init(_:options:)``
/// - ``init(url:options:)``
/// - ``connect(within:)``
///
/// ### Caching
/// - ``cacher(_:space:schema:retention:)``
///
/// ### Exchanging events
/// - ``events``
///
/// ### Operating
/// - ``health()``
/// - ``eventHealth()``
/// - ``status``
/// - ``RedisEngineError``
/// - ``close()``
public final actor RedisEngine {
  private nonisolated let core: EngineCore

  /// Creates an engine, and begins to connect.
  ///
  /// - Parameters:
  ///   - address: The address of the server.
  ///   - options: The settings.
  /// - Throws: An error if the process has no thread or file descriptor left; a ``RedisEngineError`` of the kind
  ///   `configuration` if the address or the name of the client is not valid, or if the address needs TLS and the trait `TLS`
  ///   of the package is not enabled.
  /// - Precondition: The leases last at least 200 milliseconds, ``RedisOptions/clearReplicas`` is not negative, and
  ///   ``RedisOptions/eventLimit`` is at least 1,000.
  public init(_ address: RedisAddress, options: RedisOptions = RedisOptions()) throws {
    do {
      core = try EngineCore(address, options)
    } catch {
      throw RedisEngineError.publicError(error)
    }
  }

  /// Creates an engine for the server of a URL, and begins to connect.
  ///
  /// | URL | Server |
  /// |---|---|
  /// | `redis://user:password@host:6379/2` | over TCP, with the database 2 |
  /// | `rediss://user:password@host:6380/2` | over TCP with TLS, and the authorities of the system |
  /// | `unix://user:password@/run/redis.sock?db=2` | through a Unix domain socket |
  ///
  /// All parts but the host or the path are optional. Other characters than letters, digits and `-._~` are percent-escaped
  /// in the user and the password. ``RedisOptions/credentials`` replace the user and the password of the URL, and the
  /// database of the URL replaces ``RedisOptions/database``.
  ///
  /// - Parameters:
  ///   - url: The URL.
  ///   - options: The settings.
  /// - Throws: A ``RedisEngineError`` of the kind `configuration` if the URL is not valid, which does not contain it, and the
  ///   errors of ``init(_:options:)``.
  public init(url: String, options: RedisOptions = RedisOptions()) throws {
    do {
      let parsed = try RedisURL(url)
      var options = options
      if options.credentials == nil, let password = parsed.password {
        let credentials = RedisCredentials(user: parsed.user, password: password)
        options.credentials = { credentials }
      }
      options.database = parsed.database ?? options.database
      core = try EngineCore(parsed.address, options)
    } catch {
      throw RedisEngineError.publicError(error)
    }
  }

  /// Waits until the caches' connection is made, for probes of readiness.
  ///
  /// ```swift
  /// import PlexusRedis
  ///
  /// func isReady(_ engine: RedisEngine) async -> Bool {
  ///   do {
  ///     try await engine.connect(within: .seconds(1))
  ///     return true
  ///   } catch {
  ///     print(error)
  ///     return false
  ///   }
  /// }
  /// ```
  ///
  /// The engine connects by itself: a call that throws ends nothing. In a cluster, the call waits for the masters of all
  /// caches that exist when it is called; without one, for any server.
  ///
  /// - Parameter limit: The time to wait.
  /// - Throws: A ``RedisEngineError``: at once if the server refuses the password, the certificate or the database, or runs in
  ///   a mode that is not supported, and otherwise the reason of the last attempt after the time is over. A
  ///   `CancellationError` if the task is cancelled.
  public nonisolated func connect(within limit: Duration) async throws {
    try await core.connect(within: limit)
  }

  /// Returns the cacher of one cache, whose values are stored as JSON.
  ///
  /// - Parameters:
  ///   - type: The type of the values.
  ///   - space: The name of the cache among all caches on the server. It must not be empty or contain braces.
  ///   - schema: The version of the format of the values, which can be any text. Each version has entries and fetches of
  ///     its own; clears reach all of them.
  ///   - retention: The time after which the server removes an entry that was not replaced, if it is not
  ///     ``RedisOptions/retention``. An entry that its cache cannot use as long is removed earlier.
  /// - Returns: The cacher, which keeps the connection open. Use it for only one cache.
  public nonisolated func cacher<Value: Codable & Sendable>(
    _ type: Value.Type = Value.self,
    space: String,
    schema: String,
    retention: Duration? = nil
  ) -> any SharedCacher<Value> {
    RedisCacher(core, core.space(space, schema: schema, retention: retention))
  }

  /// The link that carries events between the processes, as JSON.
  ///
  /// ```swift
  /// import Plexus
  /// import PlexusRedis
  ///
  /// struct PriceChanged: Event, Codable {
  ///   let book: String
  /// }
  ///
  /// func announcePrices(on bus: EventBus, over engine: RedisEngine) -> ObservationToken {
  ///   bus.connect(PriceChanged.self, as: "prices", over: engine.events, .everyNode())
  /// }
  /// ```
  ///
  /// The link has a connection of its own, which is established by the first call and kept open by the connected buses.
  /// The server needs version 7 or later. See <doc:operating-a-server>.
  public nonisolated var events: any EventLink { core.events }

  /// Registers a subscriber and returns the current state of the caches' connection and all later states.
  public nonisolated func health() -> Subscription<EngineHealth> {
    core.health.subscription(bufferingPolicy: .unbounded)
  }

  /// Registers a subscriber and returns the current state of the events' connection and all later states.
  ///
  /// The state is `nil` before the first use of ``events``.
  public nonisolated func eventHealth() -> Subscription<EngineHealth?> {
    core.events.health.subscription(bufferingPolicy: .unbounded)
  }

  /// The current state, load and numbers of the connections, for monitoring.
  public nonisolated var status: EngineStatus { core.status }

  /// Repeats the removals that have failed, releases the leases, the registration and the unacknowledged events of this
  /// process, and ends its connections.
  ///
  /// Call this method before the process ends. Otherwise, other processes wait for its leases, and the next clear with
  /// the reach `.everywhere` waits until its near lease has expired. Caches continue without the server, and the call waits
  /// for their lookups that are on their way. Publishing an event throws, and connected buses report that their link has
  /// ended. The call is not ended by cancellation. With a server that does not answer, it takes about
  /// ``RedisOptions/commandTimeout``, or ``RedisOptions/eventTimeout`` if this process has events of a group, whichever is
  /// longer.
  ///
  /// - Throws: The error of a removal that has failed again within ``RedisOptions/commandTimeout``: other processes can
  ///   still use its entries. The engine is closed in any case.
  public func close() async throws {
    try await core.close()
  }
}
