// The calls into the C library that need pointers. Each pointer is to a local variable or to the storage of an
// array, and none outlives its call.

internal import PlexusSupport

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#endif

/// A connected stream socket that never blocks, closed when it is released.
final class RedisSocket: Sendable {
  /// The result of an attempt to read or write.
  enum Transfer: Sendable {
    case bytes(Int)
    case wouldBlock
    case ended(reason: String)
  }

  let descriptor: Int32

  #if TLS
  /// The encryption, once it is established, if the address requires it.
  private let encryption = Locked<TLSSession?>(nil)
  #endif

  private init(owning descriptor: Int32) {
    self.descriptor = descriptor
  }

  deinit {
    close(descriptor)
  }

  /// Connects to a server, trying each of its addresses in turn.
  ///
  /// - Parameters:
  ///   - address: The address.
  ///   - lookup: The lookup of a host that is a name.
  ///   - number: The number of the address to begin with, beyond the last of which the first follows.
  ///   - deadline: The time at which to give up.
  ///   - isStopped: Called between waits of at most 100 milliseconds.
  /// - Returns: The connected socket.
  /// - Throws: ``RedisConnectionError/unreachable(address:reason:)``, or
  ///   ``RedisConnectionError/untrusted(address:reason:)``.
  static func connect(
    to address: RedisAddress,
    by lookup: NameLookup,
    beginningWith number: Int = 0,
    deadline: Nanoseconds,
    isStopped: () -> Bool
  ) throws(RedisConnectionError) -> RedisSocket {
    var reason = "no address was found"
    var isUntrusted = false
    let start = Nanoseconds.now
    let targets: [Target]
    do throws(NameLookup.Failure) {
      targets = try Self.targets(of: address, lookup, deadline, isStopped)
    } catch {
      throw .unreachable(address: address, reason: error.reason)
    }
    let lookupTime = Nanoseconds.now - start
    var isRefused = true
    for index in targets.indices {
      let target = targets[(index + number) % targets.count]
      // An address that does not answer leaves time for the others.
      let now = Nanoseconds.now
      let deadline = now + max(0, deadline - now) / Nanoseconds(targets.count - index)
      switch connect(to: target, deadline: deadline, isStopped: isStopped) {
      case .success(let socket):
        guard address.isEncrypted else { return socket }
        do throws(TLSFailure) {
          try socket.encrypt(as: address, deadline: deadline, isStopped: isStopped)
          return socket
        } catch {
          (reason, isUntrusted) = (error.reason, error.isUntrusted)
        }
      case .failure(let failure): reason = failure.reason
      }
      if Nanoseconds.now >= deadline { isRefused = false }
    }
    lookup.keep(targets, after: lookupTime, of: deadline - start, isRefused: isRefused)
    throw isUntrusted
      ? .untrusted(address: address, reason: reason)
      : .unreachable(address: address, reason: reason)
  }

  /// Reads the bytes that have arrived, as far as they fit.
  func read(into buffer: inout [UInt8]) -> Transfer {
    #if TLS
    if let session = encryption.withLock({ $0 }) { return session.read(into: &buffer) }
    #endif
    let count = buffer.count
    let result = unsafe buffer.withUnsafeMutableBytes { bytes in
      retrying { unsafe recv(descriptor, bytes.baseAddress, count, 0) }
    }
    if result > 0 { return .bytes(result) }
    if result == 0 { return .ended(reason: "the server closed it") }
    return errno == EAGAIN || errno == EWOULDBLOCK ? .wouldBlock : .ended(reason: Self.lastError())
  }

  /// Writes bytes, as far as the system takes them.
  func write(_ bytes: ArraySlice<UInt8>) -> Transfer {
    #if TLS
    if let session = encryption.withLock({ $0 }) { return session.write(bytes) }
    #endif
    #if canImport(Darwin)
    let flags: Int32 = 0
    #else
    let flags = Int32(MSG_NOSIGNAL)
    #endif
    let result = unsafe bytes.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return 0 }
      return retrying { unsafe send(descriptor, start, bytes.count, flags) }
    }
    if result >= 0 { return .bytes(result) }
    return errno == EAGAIN || errno == EWOULDBLOCK ? .wouldBlock : .ended(reason: Self.lastError())
  }

  /// Makes reads and writes of all threads end.
  func shutDown() {
    _ = shutdown(descriptor, Int32(SHUT_RDWR))
  }

  static func lastError() -> String {
    SystemError.message(errno)
  }
}

// MARK: - Connecting

extension RedisSocket {
  private struct ConnectFailure: Error {
    let reason: String
  }

  /// One address that a socket can be connected to.
  struct Target: Sendable {
    fileprivate let family: Int32
    fileprivate let address: [UInt8]
  }

  private static func targets(
    of address: RedisAddress,
    _ lookup: NameLookup,
    _ deadline: Nanoseconds,
    _ isStopped: () -> Bool
  ) throws(NameLookup.Failure) -> [Target] {
    switch address {
    case .unix(let path):
      var socketAddress = sockaddr_un()
      let capacity = MemoryLayout.size(ofValue: socketAddress.sun_path)
      let bytes = Array(path.utf8)
      guard bytes.count < capacity, !bytes.contains(0) else {
        throw NameLookup.Failure(reason: "the path has to be shorter than \(capacity) bytes")
      }
      socketAddress.sun_family = sa_family_t(AF_UNIX)
      unsafe withUnsafeMutableBytes(of: &socketAddress.sun_path) {
        unsafe $0.copyBytes(from: bytes)
      }
      return [
        Target(
          family: AF_UNIX,
          address: unsafe withUnsafeBytes(of: socketAddress) { unsafe Array($0) }
        )
      ]
    case .sentinel, .cluster:
      throw NameLookup.Failure(reason: "the address is that of several servers")
    case .tcp(let host, let port), .tls(let host, let port, _, _, _):
      // A numeric address needs no lookup.
      if case .success(let targets) = systemLookup(host, port, flags: AI_NUMERICHOST) {
        return targets
      }
      return try lookup.targets(of: host, port, deadline: deadline, isStopped: isStopped)
    }
  }

  /// Returns the addresses that the system finds for a host, however long it takes.
  static func systemLookup(
    _ host: String,
    _ port: UInt16,
    flags: Int32 = 0
  ) -> Result<[Target], NameLookup.Failure> {
    var hints = unsafe addrinfo()
    unsafe hints.ai_family = AF_UNSPEC
    unsafe hints.ai_flags = flags
    #if canImport(Glibc)
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    #else
    unsafe hints.ai_socktype = SOCK_STREAM
    #endif
    var list: UnsafeMutablePointer<addrinfo>?
    let status = unsafe getaddrinfo(host, String(port), &hints, &list)
    guard status == 0 else {
      return .failure(NameLookup.Failure(reason: unsafe String(cString: gai_strerror(status))))
    }
    defer { unsafe freeaddrinfo(list) }
    var targets: [Target] = []
    var next = unsafe list
    while let info = unsafe next {
      let bytes = unsafe UnsafeRawBufferPointer(
        start: info.pointee.ai_addr,
        count: Int(info.pointee.ai_addrlen)
      )
      targets.append(Target(family: unsafe info.pointee.ai_family, address: unsafe Array(bytes)))
      unsafe next = info.pointee.ai_next
    }
    return .success(targets)
  }

  private static func connect(
    to target: Target,
    deadline: Nanoseconds,
    isStopped: () -> Bool
  ) -> Result<RedisSocket, ConnectFailure> {
    #if canImport(Glibc)
    let type = Int32(SOCK_STREAM.rawValue)
    #else
    let type = SOCK_STREAM
    #endif
    let descriptor = socket(target.family, type, 0)
    guard descriptor >= 0 else { return .failure(ConnectFailure(reason: lastError())) }
    let connected = RedisSocket(owning: descriptor)
    connected.configure(isTCP: target.family != AF_UNIX)
    let status: Int32 = unsafe target.address.withUnsafeBytes { bytes in
      guard let start = unsafe bytes.assumingMemoryBound(to: sockaddr.self).baseAddress else {
        return -1
      }
      return unsafe connectDescriptor(descriptor, start, socklen_t(bytes.count))
    }
    if status == 0 { return .success(connected) }
    guard errno == EINPROGRESS else { return .failure(ConnectFailure(reason: lastError())) }
    while !isStopped() {
      let remaining = deadline - .now
      guard remaining > 0 else {
        return .failure(ConnectFailure(reason: "the server did not answer in time"))
      }
      var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      let milliseconds = Int32(min(remaining / 1_000_000 + 1, 100))
      guard unsafe poll(&polled, 1, milliseconds) > 0 else { continue }
      var error: Int32 = 0
      var size = socklen_t(MemoryLayout<Int32>.size)
      _ = unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &size)
      guard error == 0 else {
        return .failure(ConnectFailure(reason: SystemError.message(error)))
      }
      return .success(connected)
    }
    return .failure(ConnectFailure(reason: "the connection is closed"))
  }

  /// Encrypts the connection, before anything else is sent.
  private func encrypt(
    as address: RedisAddress,
    deadline: Nanoseconds,
    isStopped: () -> Bool
  ) throws(TLSFailure) {
    #if TLS
    guard case .tls(let host, _, let ca, let certificate, let key) = address else { return }
    let session = try TLSSession(
      over: descriptor,
      host: host,
      ca: ca,
      certificate: certificate,
      key: key
    )
    while let need = try session.handshake() {
      guard !isStopped() else { throw TLSFailure(reason: "the connection is closed") }
      let remaining = deadline - .now
      guard remaining > 0 else {
        throw TLSFailure(reason: "the server did not answer the TLS handshake in time")
      }
      var readiness = Readiness()
      readiness.watch(descriptor, for: need == .toRead ? .readable : .writable)
      readiness.wait(milliseconds: Int32(min(remaining / 1_000_000 + 1, 100)))
    }
    encryption.withLock { $0 = session }
    #else
    throw TLSFailure(reason: "this build has no TLS")
    #endif
  }

  private func configure(isTCP: Bool) {
    _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    if isTCP {
      set(Int32(IPPROTO_TCP), TCP_NODELAY)
      set(SOL_SOCKET, SO_KEEPALIVE)
    }
    #if canImport(Darwin)
    set(SOL_SOCKET, SO_NOSIGPIPE)
    #endif
  }

  private func set(_ level: Int32, _ option: Int32) {
    var isOn: Int32 = 1
    _ = unsafe setsockopt(descriptor, level, option, &isOn, socklen_t(MemoryLayout<Int32>.size))
  }
}

/// Calls a system function again when a signal has interrupted it.
private func retrying(_ call: () -> Int) -> Int {
  while true {
    let result = call()
    if result >= 0 || errno != EINTR { return result }
  }
}

/// The `connect` of the C library, which a method here would shadow.
private func connectDescriptor(
  _ descriptor: Int32,
  _ address: UnsafePointer<sockaddr>,
  _ length: socklen_t
) -> Int32 {
  unsafe connect(descriptor, address, length)
}
