internal import Plexus

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

extension SharedCache.Version {
  init(_ epoch: TierEpoch, token: UInt64) {
    self.init(epoch: epoch.counter, nonce: epoch.nonce, token: token)
  }

  /// The epoch and its nonce.
  var tierEpoch: TierEpoch { TierEpoch(counter: epoch, nonce: nonce) }
}
