import Plexus
import PlexusStorage
import TestSupport
import Testing

@Suite(.fewAtOnce) struct `An error of a cacher` {
  @Test func `an error of a cacher names keys and reasons in order, and at most five of them`() {
    let one = CacherError(failures: [
      "b": CancellationError(), "a": StorageError.locked(path: "/x"),
    ])
    #expect(one.keys == ["a", "b"])
    #expect(
      one.description
        == """
        2 entries of the cacher failed: a: Another instance or process has kept /x locked for longer \
        than ten seconds.; b: CancellationError()
        """
    )
    let failures = (0..<9).map { ("\($0)", CancellationError() as any Error) }
    let many = CacherError(failures: Dictionary(uniqueKeysWithValues: failures))
    #expect(many.description.hasSuffix("; 4: CancellationError(); and 4 more"))
  }

  @Test func `an error of a cacher names one entry or member in the singular`() {
    let entry = CacherError(failures: ["a": CancellationError()])
    #expect(entry.description == "1 entry of the cacher failed: a: CancellationError()")
    let member = MuxRepositoryError(failures: [.init(id: "users", error: CancellationError())])
    #expect(
      member.description == "1 member of the repository failed: users: CancellationError()"
    )
  }

  @Test func `an entry is compared by all that it has`() {
    let entry = CacheEntry(value: 1, storedAt: .seconds(1))
    #expect(entry == CacheEntry(value: 1, storedAt: .seconds(1), validator: nil))
    #expect(entry != CacheEntry(value: 1, storedAt: .seconds(2)))
    #expect(entry != CacheEntry(value: 1, storedAt: .seconds(1), validator: "x"))
    #expect(Set([entry, entry]).count == 1)
  }
}
