import Plexus

/// An event that the origin has gone offline or online.
struct OriginChange: Event, Hashable {
  let isOnline: Bool
}
