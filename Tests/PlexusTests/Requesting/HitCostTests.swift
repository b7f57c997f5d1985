#if canImport(Glibc)
import Glibc
import Plexus
import PlexusTesting
import TestSupport
import Testing

/// Allocates all memory that the process can get: any further allocation ends the process.
///
/// It is used in separate processes.
private struct Exhaustion: ~Copyable {
  /// The allocated blocks, each of which begins with the address of the previous one.
  private var last: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
  private var limit = rlimit()

  private static var memory: __rlimit_resource_t { __rlimit_resource_t(RLIMIT_AS.rawValue) }

  init() {
    getrlimit(Self.memory, &limit)
    // Less than there is, so that nothing can be added.
    var none = limit
    none.rlim_cur = 0
    setrlimit(Self.memory, &none)
    var size = 1 << 20
    while size >= 8 {
      while let piece = malloc(size) {
        let link = piece.assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
        link.pointee = UnsafeMutableRawPointer(last)
        last = link
      }
      size = size > 1024 ? size / 2 : size - 8
    }
  }

  /// Frees all blocks.
  consuming func end() {
    while let piece = last {
      last = piece.pointee?.assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
      free(piece)
    }
    setrlimit(Self.memory, &limit)
  }
}

/// Whether the program can run without free memory, which sanitizers cannot.
private var mayExhaust: Bool {
  let program = dlopen(nil, RTLD_NOW)
  return dlsym(program, "__asan_init") == nil && dlsym(program, "__tsan_init") == nil
}

@Suite(
  .fewAtOnce,
  .enabled(if: mayExhaust, "a sanitizer does not bear a process without memory")
)
struct `A hit when all memory is taken` {
  /// Creates an object that the optimizer cannot remove.
  @inline(never) private static func makeParcel() -> AnyObject { Parcel(1) }

  @Test(.startsProcess) func `making an object ends the process when all memory is taken`() async {
    await #expect(processExitsWith: .failure) {
      let memory = Exhaustion()
      let parcel = Self.makeParcel()
      memory.end()
      withExtendedLifetime(parcel) {}
    }
  }

  @Test(.guarantee(.hitDoesNotSuspend), .startsProcess)
  func `a hit of a map makes no object, whatever its keys are`() async {
    await #expect(processExitsWith: .success) {
      let numbers = MultiplexerMap<Int, Int>(capacity: .count(10)) { $0 }
      let names = MultiplexerMap<String, String> { $0 }
      let name = String(repeating: "n", count: 24)
      // Lookups that happen only once have happened by the second time.
      for _ in 0..<2 { _ = try await (numbers.request(7), names.request(name)) }
      _ = numbers.cachedValue(7)
      let memory = Exhaustion()
      for _ in 0..<1000 {
        _ = try await numbers.request(7)
        _ = try await names.request(name)
        _ = numbers.cachedValue(7)
      }
      memory.end()
      #expect(numbers.statistics.hits == 1001)
      #expect(names.statistics.hits == 1001)
    }
  }

  @Test(.guarantee(.hitDoesNotSuspend), .startsProcess)
  func `a hit of a multiplexer makes no object`()
    async
  {
    await #expect(processExitsWith: .success) {
      let cache = Multiplexer { "Ada Lovelace, Countess" }
      for _ in 0..<2 { _ = try await cache.request() }
      _ = cache.cachedValue
      let memory = Exhaustion()
      for _ in 0..<1000 {
        _ = try await cache.request()
        _ = cache.cachedValue
      }
      memory.end()
      #expect(cache.statistics.hits == 1001)
    }
  }
}
#endif
