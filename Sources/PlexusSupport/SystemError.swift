// The pointer is to a local variable, and does not outlive its call.

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Android)
import Android
#elseif canImport(WASILibc)
import WASILibc
#endif

/// A call into the C library that failed.
package struct SystemError: Error, Hashable, CustomStringConvertible {
  package let call: String
  /// The value of `errno`.
  package let code: Int32

  package init(call: String, code: Int32 = errno) {
    self.call = call
    self.code = code
  }

  package var description: String { "\(call) failed: \(Self.message(code))." }

  /// The message of the system for an error code.
  package static func message(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 256)
    _ = unsafe strerror_r(code, &buffer, buffer.count)
    return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
