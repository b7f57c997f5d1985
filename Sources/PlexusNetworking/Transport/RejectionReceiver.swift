internal import Foundation
internal import PlexusSupport

#if canImport(FoundationNetworking)
internal import FoundationNetworking
#endif

/// A receiver that holds back a 401 to a request that will be sent again.
final class RejectionReceiver: HTTPReceiver {
  private enum Phase {
    case waits
    case isRejected(count: Int)
  }

  private let receiver: any HTTPReceiver
  private let holdsBack: Bool
  private let phase = Locked(Phase.waits)

  /// Creates a receiver.
  ///
  /// - Parameters:
  ///   - receiver: The receiver of the answer.
  ///   - holdsBack: Whether it does not receive a 401.
  init(_ receiver: any HTTPReceiver, holdsBack: Bool) {
    self.receiver = receiver
    self.holdsBack = holdsBack
  }

  /// Whether the answer is a 401.
  var isRejected: Bool {
    phase.withLock { if case .isRejected = $0 { true } else { false } }
  }

  func onPriorityChange(_ change: @escaping @Sendable (TaskPriority) -> Void) {
    receiver.onPriorityChange(change)
  }

  func begin(_ response: HTTPURLResponse) throws {
    let isRejected = response.statusCode == 401
    if isRejected { phase.withLock { $0 = .isRejected(count: 0) } }
    if !isRejected || !holdsBack { try receiver.begin(response) }
  }

  func receive(_ bytes: Data) throws {
    guard holdsBack else { return try receiver.receive(bytes) }
    let isHeld = phase.withLock { phase -> Bool? in
      guard case .isRejected(let count) = phase else { return false }
      guard count + bytes.count <= Self.heldBytes else { return nil }
      phase = .isRejected(count: count + bytes.count)
      return true
    }
    guard let isHeld else { throw EnoughReceived() }
    if !isHeld { try receiver.receive(bytes) }
  }

  /// The bytes of the body of a 401 that are read, so that its connection can be used again.
  private static let heldBytes = 65_536
}
