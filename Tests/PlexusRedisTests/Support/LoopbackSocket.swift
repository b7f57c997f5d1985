import Foundation
import PlexusSupport

/// A TCP socket that is bound to a free port of the loopback interface, and closed with the last reference.
final class LoopbackSocket: Sendable {
  let descriptor: Int32
  let port: UInt16

  init() throws(SystemError) {
    #if canImport(Darwin)
    let type = SOCK_STREAM
    #else
    let type = Int32(SOCK_STREAM.rawValue)
    #endif
    descriptor = socket(AF_INET, type, 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) { [descriptor] pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        bind(descriptor, pointer, size) == 0 && getsockname(descriptor, pointer, &size) == 0
      }
    }
    port = UInt16(bigEndian: address.sin_port)
    guard isBound else { throw SystemError(call: "bind") }
  }

  deinit {
    close(descriptor)
  }
}
