import Foundation
import TestSupport

/// The wall clock of a process, which the test sets.
///
/// A shared library replaces the functions of the C library that read the wall clock. Monotonic clocks stay as they are.
/// The number of seconds by which the clock is wrong is in a file that the process maps, so the clock can jump.
final class SkewedClock: Sendable {
  /// The compiler of the library, if this machine has one and can load such libraries.
  static let compiler: String? = {
    #if os(Linux)
    return SystemProgram.path(of: "cc", "clang", "gcc")
    #else
    return nil
    #endif
  }()

  private static let source = """
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <sys/syscall.h>
    #include <sys/time.h>
    #include <time.h>
    #include <unistd.h>

    static const volatile long long *skew;

    __attribute__((constructor)) static void map_skew(void) {
      const char *path = getenv("WALL_CLOCK_SKEW");
      int file = path ? open(path, O_RDONLY) : -1;
      if (file < 0) abort();
      skew = mmap(NULL, sizeof *skew, PROT_READ, MAP_SHARED, file, 0);
      if (skew == MAP_FAILED) abort();
      close(file);
    }

    int clock_gettime(clockid_t clock, struct timespec *result) {
      int status = (int)syscall(SYS_clock_gettime, clock, result);
      if (status == 0 && skew && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        result->tv_sec += *skew;
      return status;
    }

    int timespec_get(struct timespec *result, int base) {
      return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, result) == 0 ? base : 0;
    }

    int gettimeofday(struct timeval *result, void *zone) {
      struct timespec now;
      int status = clock_gettime(CLOCK_REALTIME, &now);
      result->tv_sec = now.tv_sec;
      result->tv_usec = now.tv_nsec / 1000;
      return status;
    }

    time_t time(time_t *result) {
      struct timespec now;
      clock_gettime(CLOCK_REALTIME, &now);
      if (result) *result = now.tv_sec;
      return now.tv_sec;
    }

    """

  private let folder: URL
  private var file: URL { folder.appending(path: "skew") }
  private var library: URL { folder.appending(path: "clock.so") }

  /// Creates a clock.
  ///
  /// - Parameter seconds: The number of seconds by which it is ahead.
  init(ahead seconds: Int) throws {
    folder = FileManager.default.temporaryDirectory
      .appending(path: "clock-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(repeating: 0, count: 8).write(to: file)
    try set(ahead: seconds)
    let source = folder.appending(path: "clock.c")
    try Data(Self.source.utf8).write(to: source)
    // Not on the thread that starts all processes: it would wait for the compiler, and other tests for that thread.
    let command = "\(Self.compiler ?? "cc") -shared -fPIC -o '\(library.path)' '\(source.path)'"
    guard system(command) == 0 else { throw CocoaError(.executableLoad) }
  }

  deinit {
    try? FileManager.default.removeItem(at: folder)
  }

  /// The environment of a process with this clock.
  var environment: [String: String] {
    ["LD_PRELOAD": library.path, "WALL_CLOCK_SKEW": file.path]
  }

  /// Lets the clock jump.
  ///
  /// - Parameter seconds: The number of seconds by which it is ahead from now on.
  func set(ahead seconds: Int) throws {
    let handle = try FileHandle(forWritingTo: file)
    defer { try? handle.close() }
    try handle.write(contentsOf: withUnsafeBytes(of: Int64(seconds)) { Data($0) })
  }
}
