// Unsafe because the C library fills a structure through a pointer, which is not kept.

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Android)
internal import Android
#endif

/// The time since 1970-01-01T00:00Z, which may be set forwards and backwards by anybody.
///
/// It serves only what has to mean something after a restart.
@usableFromInline
func wallClockTime() -> Duration {
  var time = timespec()
  unsafe clock_gettime(CLOCK_REALTIME, &time)
  return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
}
