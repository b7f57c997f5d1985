/// What happens to a fetch when the last caller that waited for it has left.
public enum UnobservedFetch: Hashable, Sendable {
  /// It goes on, and its value is kept for those who come later.
  case finishAndStore
  /// It is cancelled, and everything is as it was before it began.
  ///
  /// A fetch that began without a caller (behind a stale value, or for a refresh during a fetch)
  /// is not cancelled when somebody who joined it leaves.
  case cancel
}
