/// The processes for which a removal holds when the call returns.
public enum ClearReach: Hashable, Sendable {
  /// This process.
  case here
  /// The engine of a ``SharedCacher``: other processes follow within the time for which they trust their copies.
  case shared
  /// All processes: no request that begins afterwards is answered with a value that was fetched before.
  ///
  /// If a process does not respond, the call waits until the trust of that process has expired.
  case everywhere
}
