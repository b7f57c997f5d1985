// Unsafe because the caller owns the memory: it initializes it, and deallocates it once, with the same alignment.

#if canImport(Darwin)
// The allocator of the standard library is as fast there.
#elseif canImport(Glibc)
public import Glibc
#elseif canImport(Musl)
public import Musl
#elseif canImport(Android)
public import Android
#elseif canImport(WASILibc)
public import WASILibc
#endif

extension UnsafeMutableRawPointer {
  #if !canImport(Darwin)
  /// Whether `malloc` aligns sufficiently; what `allocate` does in any case costs twice as much.
  @inlinable
  @inline(__always)
  static func needsPlainMemory(alignment: Int) -> Bool { alignment <= 2 * MemoryLayout<Int>.size }
  #endif

  /// Allocates memory that ``deallocatePlain(alignment:)`` releases.
  @inlinable
  @inline(__always)
  static func allocatePlain(byteCount: Int, alignment: Int) -> UnsafeMutableRawPointer {
    #if !canImport(Darwin)
    if unsafe needsPlainMemory(alignment: alignment), let memory = unsafe malloc(byteCount) {
      return unsafe memory
    }
    #endif
    // Ends the program if there is no memory.
    return .allocate(byteCount: byteCount, alignment: alignment)
  }

  /// Releases memory that ``allocatePlain(byteCount:alignment:)`` has allocated.
  @inlinable
  @inline(__always)
  func deallocatePlain(alignment: Int) {
    #if !canImport(Darwin)
    if unsafe Self.needsPlainMemory(alignment: alignment) { return unsafe free(self) }
    #endif
    unsafe deallocate()
  }
}
