// @unchecked Sendable as `Flight`; the rest is constant or atomic.

internal import Synchronization

/// A fetch of several keys, each of which has its own flight.
///
/// It is cancelled when every flight has ended or been cancelled, and has the highest priority of all flights.
@usableFromInline
final class BulkFlight: Flight, @unchecked Sendable {
  /// The flights of its keys.
  let parts: [Flight]
  private let remaining: Atomic<Int>
  /// The fetch of which it is a part, if it fetches only a part of the keys.
  private let superior: BulkFlight?

  @usableFromInline
  init(_ flights: [Flight], partOf whole: BulkFlight? = nil) {
    parts = flights
    superior = whole
    remaining = Atomic(flights.count)
    super.init()
    // When its closure is called.
    plan.isCounted = true
    guard let whole else { return }
    plan.inheritsTaskLocals = whole.plan.inheritsTaskLocals
    for flight in flights { raise(to: flight.priority) }
  }

  override var label: String? {
    let labels = parts.prefix(3).compactMap(\.label).joined(separator: ", ")
    return parts.count > 3 ? "\(labels) and \(parts.count - 3) more" : labels
  }

  override var limit: FetchLimit? { parts.first?.limit }

  override var hasCallers: Bool { parts.contains(where: \.hasCallers) }

  override var isFollowed: Bool { parts.contains(where: \.isFollowed) }

  @usableFromInline override var whole: Flight { superior ?? self }

  override var isSettled: Bool { !parts.contains(where: \.isNeeded) }

  /// Accounts for a flight that was cancelled or has ended.
  @usableFromInline
  func leave() {
    if remaining.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { cancel() }
  }
}
