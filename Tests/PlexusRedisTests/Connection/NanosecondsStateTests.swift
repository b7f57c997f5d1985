import TestSupport
import Testing

@testable import PlexusRedis

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("The clock of connections") struct NanosecondsStateTests {
  #if !canImport(Darwin)
  // The readings differ from those of the clock that stops only after the machine has slept, or in a time namespace.
  @Test(.guarantee(.connectionTimesAdvanceDuringSleep))
  func `the clock of connections advances while the machine sleeps`() {
    func reading() -> Nanoseconds {
      var time = timespec()
      clock_gettime(CLOCK_BOOTTIME, &time)
      return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
    let before = reading()
    let now = Nanoseconds.now
    #expect(before <= now && now <= reading())
  }
  #endif

  @Test(.guarantee(.connectionTimesAdvanceDuringSleep))
  func `the clock of connections measures durations, and bounds long ones`() {
    #expect(Nanoseconds(.milliseconds(1_500)) == 1_500_000_000)
    #expect(Nanoseconds(.seconds(Int64.max)) > 36 * 365 * 86_400 * 1_000_000_000)
    // A command that waits for a command before it, which the machine counts from its start.
    #expect(Nanoseconds(.seconds(Int64.max)) < Int64.max / 3 - .now)
    #expect(Nanoseconds(.seconds(-1)) == 0)
  }
}
