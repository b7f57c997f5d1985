// Unsafe: the identifier of a thread is a pointer on some systems, of which only the address is used.

#if canImport(Darwin)
public import Darwin
#elseif canImport(Glibc)
public import Glibc
#elseif canImport(Musl)
public import Musl
#elseif canImport(Android)
public import Android
#elseif canImport(WASILibc)
#if _runtime(_multithreaded)
#error("Plexus cannot tell the threads of WebAssembly apart: build for a target without threads")
#endif
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
    #if canImport(Darwin) || canImport(Musl)
    unsafe ThreadID(rawValue: UInt(bitPattern: pthread_self()))
    #elseif canImport(WASILibc)
    ThreadID(rawValue: 1)
    #else
    ThreadID(rawValue: UInt(truncatingIfNeeded: pthread_self()))
    #endif
  }
}
