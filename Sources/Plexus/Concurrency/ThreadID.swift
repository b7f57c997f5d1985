// Unsafe: the identifier of a thread is a pointer on some systems, of which only the address is used.

#if canImport(Darwin)
public import Darwin
#elseif canImport(Glibc)
public import Glibc
#elseif canImport(Musl)
public import Musl
#elseif canImport(Android)
public import Android
#endif

/// The identity of a running thread.
@usableFromInline
struct ThreadID: Hashable, Sendable {
  /// The identifier, or zero for no thread.
  @usableFromInline let rawValue: UInt

  /// Creates the identity of no thread.
  @inlinable
  init() {
    rawValue = 0
  }

  @inlinable
  init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  /// The current thread.
  @inlinable static var current: ThreadID {
    #if canImport(Glibc)
    ThreadID(rawValue: UInt(pthread_self()))
    #elseif canImport(Android)
    ThreadID(rawValue: UInt(bitPattern: Int(pthread_self())))
    #else
    unsafe ThreadID(rawValue: UInt(bitPattern: pthread_self()))
    #endif
  }
}
