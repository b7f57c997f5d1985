import Plexus

/// The clock has moved, and everything up to this moment has been told.
struct MomentReached: Event, Hashable {
  let moment: Duration
}
