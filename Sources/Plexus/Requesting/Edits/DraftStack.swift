/// The drafts that a new value goes below.
@usableFromInline
final class DraftStack<Value: Sendable>: Sendable {
  @usableFromInline typealias Change = @Sendable (inout Value) -> Void
  @usableFromInline typealias Weighed = EditState<Value, Change>.Weighed

  /// The numbers of the updates that the changes belong to.
  let ids: [UInt64]
  /// The changes to reapply.
  let changes: [Change]
  /// The new value, once the changes have been reapplied to it, and the name of its key for the cacher.
  @usableFromInline let base: Weighed?
  let name: String?
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
