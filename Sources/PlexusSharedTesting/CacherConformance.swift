public import Plexus

/// The conformance suite of `Cacher`: run it against your own cacher.
///
/// ```swift
/// import Plexus
/// import PlexusSharedTesting
///
/// actor MemoryCacher<Value: Sendable>: Cacher {
///   private var entries: [String: CacheEntry<Value>] = [:]
///
///   func entry(forKey key: String) -> CacheEntry<Value>? { entries[key] }
///
///   func store(_ new: [String: CacheEntry<Value>]) {
///     entries.merge(new) { _, newer in newer }
///   }
///
///   func removeEntries(forKeys keys: Set<String>) {
///     for key in keys { entries[key] = nil }
///   }
///
///   func removeAllEntries() { entries = [:] }
/// }
///
/// let suite = CacherConformance { count in
///   // Memory has one instance only. Of a cacher of files, open several in one new folder.
///   Array(repeating: MemoryCacher<CacherConformance.Value>(), count: count)
/// }
///
/// // The cacher has the default implementation of the removal by a prefix, which removes all entries.
/// for rule in CacherConformance.Rule.allCases where rule != .keepsOtherPrefixes {
///   try await suite.check(rule)
/// }
/// ```
///
/// The suite cannot cut the power: test the durability of your storage in addition. Engines that several processes share
/// have rules of their own, in ``SharedCacherConformance``.
public struct CacherConformance: Sendable {
  /// A rule that every cacher has to follow.
  public enum Rule: Hashable, CaseIterable, Sendable {
    /// A key without an entry is a miss, and can be removed.
    case missing
    /// All parts of an entry are kept: the value, the validator and the directives.
    case wholeEntries
    /// The time of an entry is kept to the attosecond, in the past and in the future.
    case exactDates
    /// The times of the directives are kept exactly, also zero and none.
    case exactDirectives
    /// A new entry replaces the previous one of its key, with all of its parts.
    case replaces
    /// All entries of a batch are stored.
    case batches
    /// Every text is a key, and no two keys are confused.
    case anyKey
    /// An empty value and one of several megabytes are kept.
    case anySize
    /// A removal of keys removes their entries, and no others.
    case removesKeys
    /// A removal of everything removes all entries, after which new ones can be stored.
    case removesEverything
    /// A removal by a prefix removes all entries whose keys have it.
    case removesPrefixes
    /// A removal by a prefix keeps all other entries.
    ///
    /// The default implementation of the protocol breaks this rule. A cacher of only one map can do without it.
    case keepsOtherPrefixes
    /// A call that starts after another has returned sees its effect, also on another instance.
    case order
    /// Reading many entries with one call returns what reading each of them does: `BatchReadingCacher`.
    case bulkReads
    /// A reader that overlaps with writers gets one whole entry of its key, or none.
    case concurrentUse
    /// Nothing is stored that was removed after its generation, by whichever instance, if the cacher counts removals.
    case fencedByRemovals
    /// A store of a cancelled task omits no entry that its error does not name, with a `CancellationError` as the reason.
    case cancelledStore
    /// A cancelled task completes its reads and removals.
    case cancelledRemoval
    /// An entry that cannot be stored is named by the error, and the others are stored.
    case failingValues
  }

  /// A rule that a cacher breaks.
  public struct Violation: Error, Hashable, CustomStringConvertible {
    /// The rule.
    public let rule: Rule
    /// The expectation that was not met.
    public let description: String
  }

  /// A value that the suite stores.
  public struct Value: Codable, Hashable, Sendable {
    /// The error of a value that refuses to be encoded.
    public struct Refusal: Error, Hashable {
      /// Creates an error.
      public init() {}
    }

    /// The content.
    public var text: String
    /// Whether encoding the value throws a ``Refusal``.
    public var refusesEncoding: Bool

    /// Creates a value.
    ///
    /// - Parameters:
    ///   - text: The content.
    ///   - refusesEncoding: Whether encoding the value throws.
    public init(_ text: String, refusesEncoding: Bool = false) {
      self.text = text
      self.refusesEncoding = refusesEncoding
    }

    /// Decodes a value.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: An error of the decoder.
    public init(from decoder: any Decoder) throws {
      self.init(try decoder.singleValueContainer().decode(String.self))
    }

    /// Encodes the value as a text.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: A ``Refusal`` if the value refuses to be encoded, or an error of the encoder.
    public func encode(to encoder: any Encoder) throws {
      if refusesEncoding { throw Refusal() }
      var container = encoder.singleValueContainer()
      try container.encode(text)
    }
  }

  private let instances: @Sendable (Int) async throws -> [any Cacher<Value>]

  /// Creates a suite.
  ///
  /// - Parameter instances: Returns a number of instances over one empty storage, as several processes would open it. A
  ///   cacher that can be opened only once is returned several times.
  public init(
    instances: @escaping @Sendable (_ count: Int) async throws -> [any Cacher<Value>]
  ) {
    self.instances = instances
  }

  /// Checks a rule.
  ///
  /// - Parameter rule: The rule.
  /// - Throws: A ``Violation``, or an error of the cacher.
  public func check(_ rule: Rule) async throws {
    let instances = try await instances(2)
    let checks = CacherChecks(rule: rule, a: instances[0], b: instances[1])
    switch rule {
    case .missing: try await checks.missing()
    case .wholeEntries: try await checks.wholeEntries()
    case .exactDates: try await checks.exactDates()
    case .exactDirectives: try await checks.exactDirectives()
    case .replaces: try await checks.replaces()
    case .batches: try await checks.batches()
    case .anyKey: try await checks.anyKey()
    case .anySize: try await checks.anySize()
    case .removesKeys: try await checks.removesKeys()
    case .removesEverything: try await checks.removesEverything()
    case .removesPrefixes: try await checks.removesPrefixes()
    case .keepsOtherPrefixes: try await checks.keepsOtherPrefixes()
    case .order: try await checks.order()
    case .bulkReads: try await checks.bulkReads()
    case .concurrentUse: try await checks.concurrentUse()
    case .fencedByRemovals: try await checks.fencedByRemovals()
    case .cancelledStore: try await checks.cancelledStore()
    case .cancelledRemoval: try await checks.cancelledRemoval()
    case .failingValues: try await checks.failingValues()
    }
  }
}
