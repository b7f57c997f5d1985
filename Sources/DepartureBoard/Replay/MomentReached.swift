import Plexus

/// An event that follows all other events up to a moment.
struct MomentReached: Event, Hashable {
  let moment: Duration
}
