// The C library calls that need pointers. Each pointer is to a local variable or to the storage of an
// array, and none outlives its call.

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// A nonblocking TCP socket on 127.0.0.1, which is closed when it is released.
final class Socket: Sendable {
  /// The result of reading.
  enum Received {
    case bytes([UInt8])
    case end
    case wouldBlock
    case failed
  }

  /// The result of writing.
  enum Sent {
    case bytes(Int)
    case wouldBlock
    case failed
  }

  /// The result of accepting a connection.
  enum Accepted {
    case connection(Socket)
    /// No connection is waiting.
    case nobody
    /// No descriptors or buffers are left in the process or the system.
    case exhausted
  }

  let descriptor: Int32

  private init(owning descriptor: Int32) {
    self.descriptor = descriptor
  }

  deinit {
    close(descriptor)
  }

  /// Returns a socket that is bound to a port, or to a free one for port zero.
  ///
  /// The socket refuses connections until it listens.
  static func bound(to port: UInt16) throws(OriginError) -> Socket {
    let socket = Socket(owning: try checked("socket", newDescriptor()))
    try socket.prepare()
    try socket.set(SO_REUSEADDR, to: 1)
    #if canImport(Darwin)
    // On other platforms, SO_REUSEADDR suffices for two sockets on one port of which one listens.
    try socket.set(SO_REUSEPORT, to: 1)
    #endif
    var address = loopbackAddress(port: port)
    let status = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        unsafe bind(socket.descriptor, pointer, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if status < 0, errno == EADDRINUSE { throw .portInUse(port) }
    _ = try checked("bind", status)
    return socket
  }

  /// Begins to accept connections.
  func startListening() throws(OriginError) {
    let status = listen(descriptor, SOMAXCONN)
    if status < 0, errno == EADDRINUSE { throw .portInUse(try port()) }
    _ = try checked("listen", status)
  }

  /// Stops accepting connections and resets the pending ones.
  ///
  /// Closing the socket is not enough: a child process that is being started briefly holds a copy of it.
  func stopListening() {
    _ = shutdown(descriptor, Int32(SHUT_RDWR))
  }

  /// Returns the port that the socket is bound to.
  func port() throws(OriginError) -> UInt16 {
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        unsafe getsockname(descriptor, pointer, &size)
      }
    }
    _ = try checked("getsockname", status)
    return UInt16(bigEndian: address.sin_port)
  }

  /// Accepts the next connection.
  func acceptNext() -> Accepted {
    while true {
      let connected = accept(descriptor, nil, nil)
      if connected >= 0 {
        let socket = Socket(owning: connected)
        // Setup fails only if the peer has closed the connection.
        do {
          try socket.prepare()
          try socket.set(TCP_NODELAY, to: 1, level: Int32(IPPROTO_TCP))
          #if canImport(Darwin)
          try socket.set(SO_NOSIGPIPE, to: 1)
          #endif
        } catch {
          continue
        }
        return .connection(socket)
      }
      switch errno {
      case EINTR, ECONNABORTED: continue
      case EMFILE, ENFILE, ENOBUFS, ENOMEM: return .exhausted
      default: return .nobody
      }
    }
  }

  /// Reads available bytes up to a maximum.
  func receive(atMost count: Int) -> Received {
    var received = 0
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      repeat {
        received = unsafe recv(descriptor, buffer.baseAddress, count, 0)
      } while received < 0 && errno == EINTR
      initializedCount = max(0, received)
    }
    if received > 0 { return .bytes(bytes) }
    if received == 0 { return .end }
    return errno == EAGAIN || errno == EWOULDBLOCK ? .wouldBlock : .failed
  }

  /// Writes as many bytes as fit, without a signal if the peer has disconnected.
  func write(_ bytes: ArraySlice<UInt8>) -> Sent {
    #if canImport(Darwin)
    let flags: Int32 = 0
    #else
    let flags = Int32(MSG_NOSIGNAL)
    #endif
    var count = 0
    repeat {
      count = unsafe bytes.withUnsafeBytes { buffer in
        guard let start = buffer.baseAddress else { return 0 }
        return unsafe send(descriptor, start, buffer.count, flags)
      }
    } while count < 0 && errno == EINTR
    if count >= 0 { return .bytes(count) }
    return errno == EAGAIN || errno == EWOULDBLOCK ? .wouldBlock : .failed
  }

  /// Shuts down the sending direction.
  func shutDownOutput() {
    _ = shutdown(descriptor, Int32(SHUT_WR))
  }

  /// Makes the release of the socket reset the connection instead of closing it gracefully.
  func resetWhenReleased() {
    var linger = linger(l_onoff: 1, l_linger: 0)
    _ = unsafe setsockopt(
      descriptor,
      SOL_SOCKET,
      SO_LINGER,
      &linger,
      socklen_t(MemoryLayout.size(ofValue: linger))
    )
  }

  /// Makes the socket nonblocking and excludes it from child processes.
  private func prepare() throws(OriginError) {
    let flags = try checked("fcntl", fcntl(descriptor, F_GETFL))
    _ = try checked("fcntl", fcntl(descriptor, F_SETFL, flags | O_NONBLOCK))
    _ = try checked("fcntl", fcntl(descriptor, F_SETFD, FD_CLOEXEC))
  }

  private func set(
    _ option: Int32,
    to value: Int32,
    level: Int32 = SOL_SOCKET
  ) throws(OriginError) {
    var value = value
    let size = socklen_t(MemoryLayout<Int32>.size)
    _ = try checked("setsockopt", unsafe setsockopt(descriptor, level, option, &value, size))
  }
}

/// Returns the result of a system call, or throws if it failed.
func checked(_ call: String, _ status: Int32) throws(OriginError) -> Int32 {
  guard status < 0 else { return status }
  throw .system(call: call, code: errno)
}

private func newDescriptor() -> Int32 {
  #if canImport(Glibc)
  socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  #else
  socket(AF_INET, SOCK_STREAM, 0)
  #endif
}

private func loopbackAddress(port: UInt16) -> sockaddr_in {
  var address = sockaddr_in()
  #if canImport(Darwin)
  address.sin_len = UInt8(MemoryLayout<sockaddr_in>.size)
  #endif
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr = in_addr(s_addr: UInt32(0x7F00_0001).bigEndian)
  return address
}

/// Returns the time of day, in seconds since 1 January 1970.
func secondsSince1970() -> Int {
  // By the precise clock: time(_:) can be in the second before that of other clocks of the system.
  var time = timespec()
  unsafe clock_gettime(CLOCK_REALTIME, &time)
  return Int(time.tv_sec)
}
