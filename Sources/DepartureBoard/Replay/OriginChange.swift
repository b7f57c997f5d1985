import Plexus

/// The origin has gone away or has come back.
struct OriginChange: Event, Hashable {
  let isOnline: Bool
}
