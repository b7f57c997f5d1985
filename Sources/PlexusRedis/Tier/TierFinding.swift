internal import Plexus

/// An entry as the engine has it: its value is not decoded.
struct TierEntry: Hashable, Sendable {
  let version: SharedCache.Version
  /// The time since it was stored, by the engine's clock.
  let age: Duration
  let payload: [UInt8]

  /// The longest time since it was stored: the age is a difference of whole milliseconds.
  var longestAge: Duration { age + .milliseconds(1) }
}

/// The result of a lookup of one key, before its payloads are decoded.
enum TierFinding: Hashable, Sendable {
  case entry(TierEntry)
  /// No node fetches the value; this node does not either, because it did not request a lease.
  case nothing(previous: TierEntry?)
  case granted(SharedCache.Lease, previous: TierEntry?)
  /// Another caller holds the lease of that version, for at most that time unless it is renewed.
  case busy(SharedCache.Version, remaining: Duration, previous: TierEntry?)
  /// The fetch for which this node waited has failed.
  case failedElsewhere(payload: [UInt8])
}
