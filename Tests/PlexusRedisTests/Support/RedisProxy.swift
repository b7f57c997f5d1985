import Foundation
import PlexusRedis
import PlexusSupport
import TestSupport

/// A proxy in front of a server, whose connections can stall and break at any byte.
///
/// The bytes of one connection stay in order, as TCP guarantees. Connections overtake one another if one of them is
/// stalled.
final class RedisProxy: Sendable {
  /// A client and its connection to the server, which are closed with the last reference.
  private final class Pair: Sendable {
    let client: Int32
    let server: Int32

    init(client: Int32, server: Int32) {
      (self.client, self.server) = (client, server)
    }

    deinit {
      close(client)
      close(server)
    }

    func cut() {
      for descriptor in [client, server] { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }
  }

  private struct State {
    var pairs: [ObjectIdentifier: Pair] = [:]
    var stalled: Set<ObjectIdentifier> = []
    /// Whether later connections stall as well.
    var stallsAll = false
    /// Whether replies are held back, while commands are passed on.
    var holdsReplies = false
    /// Whether replies are passed on slowly.
    var isSlow = false
    /// The text in a command before which the next connection that sends it is held.
    var heldText: String?
    /// Whether a connection is held before the text.
    var isHeld = false
    /// The numbers of bytes after which connections break, in turn.
    var limits: [Int] = []
    var connectionCount = 0
    /// Whether later connections end at once.
    var refuses = false
    var refusedCount = 0
  }

  private let folder: URL
  private let listener: Int32
  private let thread: LoopThread
  private let shared: Shared

  /// The part of the proxy that its threads use.
  private final class Shared: Sendable {
    let server: RedisServer
    let state = Guarded(State())
    let change = NSCondition()

    init(_ server: RedisServer) {
      self.server = server
    }

    func serve(_ client: Int32) {
      let isRefused = state.withLock { state in
        state.refusedCount += state.refuses ? 1 : 0
        return state.refuses
      }
      guard !isRefused else {
        close(client)
        return
      }
      guard let server = try? RedisShell.connect(to: server) else {
        close(client)
        return
      }
      let pair = Pair(client: client, server: server)
      let limit = state.withLock { state -> Int in
        state.pairs[ObjectIdentifier(pair)] = pair
        if state.stallsAll { state.stalled.insert(ObjectIdentifier(pair)) }
        defer { state.connectionCount += 1 }
        return state.limits.isEmpty
          ? .max : state.limits[state.connectionCount % state.limits.count]
      }
      let upwards = Guarded(limit)
      let downwards = Guarded(limit)
      Thread.detachNewThread { [self] in pump(pair, from: client, to: server, upwards) }
      Thread.detachNewThread { [self] in pump(pair, from: server, to: client, downwards) }
    }

    /// Passes bytes on until the connection breaks, or has passed on as many as it may.
    private func pump(_ pair: Pair, from source: Int32, to target: Int32, _ limit: Guarded<Int>) {
      let id = ObjectIdentifier(pair)
      var buffer = [UInt8](repeating: 0, count: 16_384)
      let isReply = source == pair.server
      while true {
        let isSlow = isReply && state.withLock { $0.isSlow }
        // 50 KB in a second.
        if isSlow { poll(nil, 0, 80) }
        let count = read(source, &buffer, isSlow ? 4_096 : buffer.count)
        // The end of a connection is held back as well.
        wait { $0.stalled.contains(id) || isReply && $0.holdsReplies }
        guard count > 0 else { break }
        let allowed = limit.withLock { limit -> Int in
          defer { limit -= min(limit, count) }
          return min(limit, count)
        }
        var rest = buffer[..<allowed]
        if !isReply, let start = hold(before: rest) {
          guard RedisShell.send(rest[..<start], to: target) else { break }
          rest = rest[start...]
          update { state in
            state.heldText = nil
            state.isHeld = true
          }
          wait { $0.isHeld }
        }
        guard RedisShell.send(rest, to: target), allowed == count else { break }
      }
      pair.cut()
      state.withLock { state in
        state.pairs[id] = nil
        state.stalled.remove(id)
      }
    }

    /// Returns where the text is before which a connection is held.
    private func hold(before bytes: ArraySlice<UInt8>) -> Int? {
      guard let text = state.withLock({ $0.heldText }),
        let range = Data(bytes).range(of: Data(text.utf8))
      else { return nil }
      return bytes.startIndex + range.lowerBound
    }

    /// Waits while a condition is met.
    private func wait(while isMet: (State) -> Bool) {
      change.lock()
      while state.withLock({ isMet($0) }) { change.wait() }
      change.unlock()
    }

    func update(_ body: (inout State) -> Void) {
      change.lock()
      state.withLock { body(&$0) }
      change.broadcast()
      change.unlock()
    }
  }

  /// Starts a proxy.
  ///
  /// - Parameters:
  ///   - server: The server.
  ///   - limits: The numbers of bytes in each direction after which connections break, in turn; none if they do not.
  init(_ server: RedisServer, breakingAfter limits: [Int] = []) throws {
    folder = FileManager.default.temporaryDirectory
      .appending(path: "proxy-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let listener = try RedisShell.listen(at: folder.appending(path: "socket").path)
    let shared = Shared(server)
    shared.state.withLock { $0.limits = limits }
    (self.listener, self.shared) = (listener, shared)
    thread = try LoopThread {
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        shared.serve(client)
      }
    }
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    thread.join()
    close(listener)
    cut()
    try? FileManager.default.removeItem(at: folder)
  }

  /// The path of its socket.
  var socket: String { folder.appending(path: "socket").path }

  var address: RedisAddress { .unix(path: socket) }

  /// Breaks all connections.
  func cut() {
    let pairs = shared.state.withLock { Array($0.pairs.values) }
    for pair in pairs { pair.cut() }
    resume()
  }

  /// Breaks all connections, and ends later ones at once until ``endRefusal()``.
  func refuse() {
    shared.update { $0.refuses = true }
    cut()
  }

  /// The number of connections that were ended at once.
  var refusedCount: Int { shared.state.withLock { $0.refusedCount } }

  /// Accepts connections again.
  func endRefusal() {
    shared.update { $0.refuses = false }
  }

  /// Stalls the connections so far.
  ///
  /// - Parameter later: Whether later ones stall as well.
  func stall(later: Bool = false) {
    shared.update { state in
      state.stalled = Set(state.pairs.keys)
      state.stallsAll = later
    }
  }

  /// Holds replies back, while commands are passed on.
  func holdReplies() {
    shared.update { $0.holdsReplies = true }
  }

  /// Passes on at most 50 KB of replies in a second.
  func slowReplies() {
    shared.update { $0.isSlow = true }
  }

  /// Holds the next connection that sends a text in a command, and all that it sends from the text on.
  func hold(before text: String) {
    shared.update { $0.heldText = text }
  }

  /// Whether a connection is held before a text.
  var isHeld: Bool { shared.state.withLock { $0.isHeld } }

  /// Passes on what was held before a text.
  func releaseHeld() { shared.update { $0.isHeld = false } }

  /// Passes on what was held back.
  func resume() {
    shared.update { state in
      state.heldText = nil
      state.isHeld = false
      state.stalled = []
      state.stallsAll = false
      state.holdsReplies = false
      state.isSlow = false
    }
  }

  /// Lets no connection break by itself from now on.
  func heal() {
    shared.update { $0.limits = [] }
  }
}
