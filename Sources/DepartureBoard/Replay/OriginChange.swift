import Plexus

/// An event for a change of the origin's availability.
struct OriginChange: Event, Hashable {
  let isOnline: Bool
}
