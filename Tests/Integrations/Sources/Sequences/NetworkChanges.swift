#if os(Linux)
import Dispatch
import Glibc
import Plexus

/// Sends when an address or a route has been added or removed: another host may be reachable now.
final class NetworkChanges {
  struct Unavailable: Error {
    let code: Int32
  }

  let changed = Messenger<Void>()
  private let source: any DispatchSourceRead

  init() throws {
    // The protocol 0 is that of routing.
    let socket = socket(AF_NETLINK, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard socket >= 0 else { throw Unavailable(code: errno) }
    // `sockaddr_nl` of <linux/netlink.h>: the family, the port, and the groups for addresses and routes of IPv4 and IPv6.
    var address = (UInt16(AF_NETLINK), UInt16(0), UInt32(0), UInt32(0x10 | 0x40 | 0x100 | 0x400))
    let result = withUnsafeBytes(of: &address) { bytes in
      bind(socket, bytes.assumingMemoryBound(to: sockaddr.self).baseAddress, UInt32(bytes.count))
    }
    guard result == 0 else {
      defer { close(socket) }
      throw Unavailable(code: errno)
    }
    source = DispatchSource.makeReadSource(
      fileDescriptor: socket,
      queue: DispatchQueue(label: "network changes")
    )
    source.setEventHandler { [changed] in
      // One change has several messages, whose content does not matter.
      var bytes = [UInt8](repeating: 0, count: 8_192)
      while recv(socket, &bytes, bytes.count, Int32(MSG_DONTWAIT)) > 0 {}
      changed.send()
    }
    source.setCancelHandler { close(socket) }
    source.activate()
  }

  deinit { source.cancel() }
}
#endif
