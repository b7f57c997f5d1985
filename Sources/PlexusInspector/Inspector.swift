public import Foundation
internal import PlexusSupport

/// A page in the browser that shows the caches, events, stores and broadcasters of this process while it runs.
///
/// ```swift
/// let users = MultiplexerMap<Int, Profile> { id in try await backend.fetchUser(id) }
/// let inspector = try await Inspector()
/// inspector.add(users, named: "users")
/// inspector.add(named: "connections") { "2 open" }
/// print(inspector.url)
/// await inspector.stop()
/// ```
///
/// The page is served on 127.0.0.1, and its address has a random token. It only reads: nothing on the page changes the
/// process. Without `showsValues`, it shows types and sizes in place of values. Leave the module out of apps that you ship.
/// <doc:inspecting-a-process> describes the page, what it costs, and the way to a process in a container or on a device.
///
/// ## What is recorded
///
/// Nothing is recorded before a source is added. From then on, the newest 1,000 posts of a bus, 100 actions of a store and
/// 1,000 events of a cache wait in buffers, without any task that runs. The page is sent at most four updates a second
/// while it is open and visible; a page in the background is sent nothing. At most four pages are open at a time.
///
/// ## Lifetime
///
/// An inspector holds its sources weakly: a source that was released is shown as ended. Releasing the last reference stops
/// the inspector, as ``stop()`` does. Closures are held until they are removed or the inspector is stopped.
///
/// A name that is in use gets a number, such as "users 2"; a source that has ended is replaced by the next one of that
/// name. An inspector shows at most 256 sources.
///
/// ## Topics
///
/// ### Starting
/// - ``init(port:showsValues:)``
/// - ``url``
/// - ``InspectorError``
///
/// ### Adding sources
/// - ``add(_:named:)-(Multiplexer<Value>,_)``
/// - ``add(_:named:describing:)-(MultiplexerMap<Key,Value>,_,_)``
/// - ``add(_:named:describing:)-(ImageLoader<Image>,_,_)``
/// - ``add(_:named:describing:)-(MediaLoader,_,_)``
/// - ``add(_:named:)-(EventBus,_)``
/// - ``add(_:named:)-(Store<State,Action>,_)``
/// - ``add(_:named:)-(Broadcaster,_)``
/// - ``add(named:_:)``
///
/// ### Ending
/// - ``remove(named:)``
/// - ``stop()``
public final class Inspector: Sendable {
  /// The address of the page, which is valid until the inspector is stopped.
  ///
  /// The random token in it is the only key to the page: print it where only its readers see it.
  public let url: URL

  let core: InspectorCore
  private let server: PageServer

  /// Creates an inspector and begins to serve its page.
  ///
  /// With a fixed port, the token is kept for a day in a file that only the user can read, in the folder for caches. An
  /// open page then finds the process after a restart, and a bookmark stays valid. Where the file cannot be kept, the token
  /// is a new one, and the page says that it has another address.
  ///
  /// - Parameters:
  ///   - port: The port, or 0 for any free port.
  ///   - showsValues: Whether the page shows values, states, actions, events and errors. Otherwise, it shows their types and
  ///     sizes, and of cases their names. Keys and tags are shown in both cases.
  /// - Throws: An ``InspectorError`` if the port is in use or not a port.
  public convenience init(port: Int = 0, showsValues: Bool = false) async throws {
    // A new user has no such folder yet.
    let caches = try? FileManager.default.url(
      for: .cachesDirectory,
      in: .userDomainMask,
      appropriateFor: nil,
      create: true
    )
    try self.init(
      port: port,
      showsValues: showsValues,
      clock: ContinuousClock(),
      tokenFolder: caches?.appending(path: "PlexusInspector").path(percentEncoded: false)
    )
  }

  init(
    port: Int,
    showsValues: Bool,
    clock: any Clock<Duration>,
    tokenFolder: String?
  ) throws(InspectorError) {
    guard let number = UInt16(exactly: port) else { throw .invalidPort(port) }
    let core = InspectorCore(showsValues: showsValues, clock: clock)
    let server = try PageServer(core, port: number, tokenFolder: tokenFolder)
    let text = "http://127.0.0.1:\(server.port)/\(server.token.text)/"
    guard let url = URL(string: text) else { throw .system("\(text) is not a URL") }
    self.url = url
    self.core = core
    self.server = server
  }

  deinit {
    end()
  }

  /// Removes the source with a name, and releases its closure.
  ///
  /// - Parameter name: The name as the page shows it. Has no effect if there is no such source.
  public func remove(named name: String) {
    core.remove(named: name)
  }

  /// Stops the inspector permanently.
  ///
  /// When this method returns, the port is free, pages are disconnected, and nothing is recorded any longer; what was
  /// recorded is released shortly afterwards. A page that is still open says so. Can be called several times; cancelling
  /// the task has no effect.
  public func stop() async {
    end()
  }

  private func end() {
    core.stop()
    server.stop()
  }
}
