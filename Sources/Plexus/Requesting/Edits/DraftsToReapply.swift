/// The drafts that a new value goes below.
@usableFromInline
final class DraftsToReapply<Value: Sendable>: Sendable {
  @usableFromInline typealias Change = @Sendable (inout Value) -> Void
  @usableFromInline typealias Weighed = EditState<Value, Change>.Weighed

  /// The numbers of the updates that the changes belong to.
  let ids: [UInt64]
  /// The changes to reapply.
  let changes: [Change]
  /// The new value below the changes, once they have been reapplied to it.
  @usableFromInline let base: Weighed?
  /// The name of its key for the cacher.
  let name: String?
  /// The value after each change.
  let results: [Weighed]

  init(
    ids: [UInt64],
    changes: [Change],
    base: Weighed? = nil,
    name: String? = nil,
    results: [Weighed] = []
  ) {
    self.ids = ids
    self.changes = changes
    self.base = base
    self.name = name
    self.results = results
  }
}
