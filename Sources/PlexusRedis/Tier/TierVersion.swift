/// The age of a space: raised by each removal of everything.
///
/// Counters are ordered, so that an engine that has lost its data is recognized as older by every node that knows a
/// higher one. The nonce distinguishes two epochs with the same counter, one of which was lost with a snapshot.
struct TierEpoch: Hashable, Sendable, CustomStringConvertible {
  let counter: UInt64
  let nonce: UInt64

  /// The text in the engine: `12-a1b2c3`.
  var description: String { "\(counter)-\(String(nonce, radix: 36))" }

  init(counter: UInt64, nonce: UInt64) {
    self.counter = counter
    self.nonce = nonce
  }

  /// Reads the text in the engine; `nil` if it is damaged.
  init?(_ text: some StringProtocol) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let counter = UInt64(parts[0]), counter <= TierScripts.largestNumber,
      let nonce = UInt64(parts[1], radix: 36)
    else {
      return nil
    }
    self.init(counter: counter, nonce: nonce)
  }
}

/// The changes of a space that every node has to acknowledge: removals of everything, and fences.
struct TierMark: Hashable, Sendable, CustomStringConvertible {
  let epoch: TierEpoch
  /// The token of the last fence; 0 for none.
  var fence: UInt64 = 0

  /// The text in the engine: `12-a1b2c3 7`.
  var description: String { "\(epoch) \(fence)" }

  /// Returns whether acknowledging another mark leaves this one open.
  func isNewer(than other: TierMark) -> Bool {
    if epoch.counter != other.epoch.counter { return epoch.counter > other.epoch.counter }
    return epoch != other.epoch || fence > other.fence
  }
}

/// The version of an entry: the epoch, then the token of the lease or store that it came with.
struct TierVersion: Hashable, Sendable {
  let epoch: TierEpoch
  let token: UInt64
}

/// An entry as the engine has it.
struct TierEntry: Hashable, Sendable {
  let version: TierVersion
  /// The time since it was stored, by the engine's clock.
  let age: Duration
  let payload: [UInt8]
}

/// The right to fetch the value of one key, until it expires or is revoked.
struct TierLease: Hashable, Sendable {
  let key: String
  let version: TierVersion
}

/// The result of a lookup of one key.
enum TierFinding: Hashable, Sendable {
  case entry(TierEntry)
  /// No node fetches the value; this node does not either, because it did not request a lease.
  case nothing(previous: TierEntry?)
  case granted(TierLease, previous: TierEntry?)
  /// Another caller holds the lease of that version, for at most that time unless it is renewed.
  case busy(TierVersion, remaining: Duration, previous: TierEntry?)
  /// The fetch for which this node waited has failed.
  case failedElsewhere(payload: [UInt8])
}

/// The result of a fill.
enum TierFill: String, Sendable {
  case stored
  /// Everything was removed after the lease was granted.
  case cleared
  /// The lease is lost: the key was removed, outdated or stored meanwhile, or the lease has expired.
  case superseded
}
