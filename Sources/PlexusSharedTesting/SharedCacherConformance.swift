public import Plexus
internal import PlexusSupport

/// The conformance suite of `SharedCacher`: run it against your own engine.
///
/// ```swift
/// import Plexus
/// import PlexusSharedTesting
///
/// let suite = SharedCacherConformance { count in
///   let engine = SharedMemory<String>()
///   return (0..<count).map { _ in engine.node() }
/// }
///
/// for rule in SharedCacherConformance.Rule.allCases {
///   try await suite.check(rule)
/// }
/// ```
///
/// An announcement that never comes makes a check wait: set a time limit for the test.
public struct SharedCacherConformance: Sendable {
  /// A rule that every shared cacher has to follow.
  public enum Rule: Hashable, CaseIterable, Sendable {
    /// One node gets the lease of a key, and the others the value that it fills in.
    case oneLease
    /// A look for many keys grants at most one lease for each of them.
    case manyKeys
    /// Nothing is stored under a lease that is older than the removal of its key.
    case fencedByRemoval
    /// Nothing is stored under a lease that is older than the removal of everything.
    case fencedByCompleteRemoval
    /// Nothing is stored under a lease that is older than a removal by one of the tags of its key.
    case fencedByTagRemoval
    /// Nothing is stored under a lease that is older than the change of its value at the origin.
    case fencedByOutdating
    /// Nothing is stored under a lease that is older than a value that was stored.
    case fencedByStore
    /// Nothing is stored or released under a lease that was lost, although the same node holds the lease again.
    case fencedByOwnLease
    /// No value is stored after a removal of everything that came after its generation.
    case fencedStore
    /// No value replaces a later change of its key by another node, while a store whose reply was lost can be repeated.
    ///
    /// Engines outside of this package receive no such stores, and follow the rule.
    case comparedStore
    /// An outdated entry is a fallback, and no answer.
    case outdatedIsFallback
    /// A removal by a tag removes the entries that were filled or stored with it, whatever their keys, and no others.
    case removesByTag
    /// A removal by a tag is announced to the nodes that have looked for a key with it, or filled or stored one.
    case announcesTagRemoval
    /// A node that has a version gets a newer one, or the lease.
    case newerThan
    /// A failure is passed to the nodes that wait for the fetch, and to no others.
    case failureElsewhere
    /// A lease that is released without a failure is taken by a node that waits.
    case releasedLease
    /// A lease that is lost releases nothing.
    case lostLease
    /// A look without a wish for a lease takes none.
    case lookOnly
    /// The end of a lease is announced as such to the nodes that have found the key busy, and later changes as well.
    case announcesLeases
    /// Changes are announced to the nodes that have looked for the key.
    case announcesToReaders
    /// Changes are announced to the node that has filled or stored the value.
    case announcesToWriters
    /// Changes are not announced to the node that makes them.
    case noEcho
    /// The removal of everything is announced, after which older copies are not trusted.
    case announcesCompleteRemoval
    /// Every text is a key.
    case anyKey
    /// The validator and the directives are kept with a value.
    case wholeEntries
  }

  /// A rule that an engine breaks.
  public struct Violation: Error, Hashable, CustomStringConvertible {
    /// The rule.
    public let rule: Rule
    /// The expectation that was not met.
    public let description: String
  }

  private let nodes: @Sendable (Int) async throws -> [any SharedCacher<String>]

  /// Creates a suite.
  ///
  /// - Parameter nodes: Returns a number of nodes, each with a connection of its own, over one empty space.
  public init(
    nodes: @escaping @Sendable (_ count: Int) async throws -> [any SharedCacher<String>]
  ) {
    self.nodes = nodes
  }

  /// Checks a rule.
  ///
  /// - Parameter rule: The rule.
  /// - Throws: A ``Violation``, or an error of the engine.
  public func check(_ rule: Rule) async throws {
    let nodes = try await nodes(2)
    let checks = Checks(rule: rule, a: nodes[0], b: nodes[1])
    switch rule {
    case .oneLease: try await checks.oneLease()
    case .manyKeys: try await checks.manyKeys()
    case .fencedByRemoval:
      try await checks.fence(.superseded) { try await $0.remove(.keys(["key"]), reach: .shared) }
    case .fencedByCompleteRemoval:
      try await checks.fence(.cleared) { try await $0.remove(.all, reach: .shared) }
    case .fencedByTagRemoval: try await checks.fencedByTagRemoval()
    case .removesByTag: try await checks.removesByTag()
    case .announcesTagRemoval: try await checks.announcesTagRemoval()
    case .fencedByOutdating: try await checks.fence(.superseded) { try await $0.outdate(["key"]) }
    case .fencedByStore:
      try await checks.fence(.superseded) { try await $0.store(["key": Checks.entry("stored")]) }
    case .fencedByOwnLease: try await checks.fencedByOwnLease()
    case .fencedStore: try await checks.fencedStore()
    case .comparedStore: try await checks.comparedStore()
    case .outdatedIsFallback: try await checks.outdatedIsFallback()
    case .newerThan: try await checks.newerThan()
    case .failureElsewhere: try await checks.failureElsewhere()
    case .releasedLease: try await checks.releasedLease()
    case .lostLease: try await checks.lostLease()
    case .lookOnly: try await checks.lookOnly()
    case .announcesLeases: try await checks.announcesLeases()
    case .announcesToReaders: try await checks.announcesToReaders()
    case .announcesToWriters: try await checks.announcesToWriters()
    case .noEcho: try await checks.noEcho()
    case .announcesCompleteRemoval: try await checks.announcesCompleteRemoval()
    case .anyKey: try await checks.anyKey()
    case .wholeEntries: try await checks.wholeEntries()
    }
  }
}
