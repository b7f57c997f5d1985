internal import Plexus

/// The removals that have failed, and that were not repeated since.
struct OwedRemovalState: Sendable {
  private var keys: Set<String> = []
  private var tags: Set<CacheTag> = []
  private var isEverything = false

  /// The number of keys and tags, and of removals of everything.
  var count: Int { keys.count + tags.count + (isEverything ? 1 : 0) }

  /// Records a removal that has failed, or in part.
  mutating func fail(_ removal: SharedCache.Removal, _ failed: Set<String>? = nil) {
    switch removal {
    case .keys(let removed):
      keys.formUnion(failed ?? removed)
      if let failed { keys.subtract(removed.subtracting(failed)) }
    case .tags(let removed): tags.formUnion(removed)
    case .all: isEverything = true
    }
  }

  /// Records a removal that the server has carried out.
  mutating func succeed(_ removal: SharedCache.Removal) {
    switch removal {
    case .keys(let removed): keys.subtract(removed)
    case .tags(let removed): tags.subtract(removed)
    case .all: (keys, tags, isEverything) = ([], [], false)
    }
  }
}
