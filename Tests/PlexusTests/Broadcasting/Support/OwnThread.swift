#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Runs a closure on a thread of its own, which belongs to no task, and waits for its end.
func onOwnThread(_ body: @escaping () -> Void) {
  final class Box {
    let body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
  }
  let box = Unmanaged.passRetained(Box(body)).toOpaque()
  #if canImport(Darwin)
  var thread: pthread_t?
  pthread_create(&thread, nil, { run($0) }, box)
  if let thread { pthread_join(thread, nil) }
  func run(_ box: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    Unmanaged<Box>.fromOpaque(box).takeRetainedValue().body()
    return nil
  }
  #else
  var thread = pthread_t()
  pthread_create(&thread, nil, { run($0) }, box)
  pthread_join(thread, nil)
  func run(_ box: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let box { Unmanaged<Box>.fromOpaque(box).takeRetainedValue().body() }
    return nil
  }
  #endif
}
