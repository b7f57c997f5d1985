public import Plexus

/// The conformance suite of `EventLink`: run it against your own link.
///
/// ```swift
/// import Plexus
/// import PlexusSharedTesting
///
/// let suite = EventLinkConformance { count in
///   let engine = EventMemory()
///   return (0..<count).map { _ in engine.node() }
/// }
///
/// for rule in EventLinkConformance.Rule.allCases {
///   try await suite.check(rule)
/// }
/// ```
///
/// A check waits for a message even if it never arrives: set a time limit for the test.
public struct EventLinkConformance: Sendable {
  /// A rule that every link has to follow.
  public enum Rule: Hashable, CaseIterable, Sendable {
    /// A value that was encoded is decoded, and other bytes are refused.
    case codec
    /// Every node gets the messages that follow its first delivery, also its own, in one order.
    case everyNode
    /// The positions of messages are the ones that publishers get.
    case positions
    /// All parts of a message arrive, whatever they contain.
    case wholeMessages
    /// Every text is a topic, and a reader gets the messages of its topic only.
    case anyTopic
    /// A reader that begins at a position gets the messages after it.
    case replay
    /// An ephemeral reader gets new messages only.
    case ephemeral
    /// Two readers of a group get different messages, and together all of them.
    case oneNode
    /// A group begins with the oldest message.
    case groupFromOldest
    /// Each group gets all messages.
    case separateGroups
    /// A message that is not acknowledged is delivered again, with a higher attempt.
    case redelivery
    /// A message that is acknowledged is not delivered again.
    case acknowledgement
    /// A message that is in progress for longer than the time until the next attempt is not delivered again.
    case progress
    /// When a stream ends, another reader gets its message.
    case release
    /// A message that is rejected is found among the dead letters, and is not delivered again.
    case rejection
    /// A stream ends with its task.
    case cancellation
  }

  /// A rule that a link breaks.
  public struct Violation: Error, Hashable, CustomStringConvertible {
    /// The rule.
    public let rule: Rule
    /// The expectation that was not met.
    public let description: String
  }

  private let nodes: @Sendable (Int) async throws -> [any EventLink]

  /// Creates a suite.
  ///
  /// - Parameter nodes: Returns the links of a number of nodes, over one engine without messages.
  public init(nodes: @escaping @Sendable (_ count: Int) async throws -> [any EventLink]) {
    self.nodes = nodes
  }

  /// Checks a rule.
  ///
  /// - Parameter rule: The rule.
  /// - Throws: A ``Violation``, or an error of the link.
  public func check(_ rule: Rule) async throws {
    let nodes = try await nodes(2)
    try await check(rule, EventLinkChecks(rule: rule, a: nodes[0], b: nodes[1]))
    guard Self.batchRules.contains(rule), nodes[0].batches(of: "topic", .everyNode()) != nil
    else { return }
    let others = try await self.nodes(2)
    try await check(
      rule,
      EventLinkChecks(rule: rule, readsBatches: true, a: others[0], b: others[1])
    )
  }

  /// The rules for reading without a group, which hold for batches as well.
  private static let batchRules: Set<Rule> = [
    .everyNode, .positions, .wholeMessages, .anyTopic, .replay, .ephemeral, .cancellation,
  ]

  private func check(_ rule: Rule, _ checks: EventLinkChecks) async throws {
    switch rule {
    case .codec: try checks.codec()
    case .everyNode: try await checks.everyNode()
    case .positions: try await checks.positions()
    case .wholeMessages: try await checks.wholeMessages()
    case .anyTopic: try await checks.anyTopic()
    case .replay: try await checks.replay()
    case .ephemeral: try await checks.ephemeral()
    case .oneNode: try await checks.oneNode()
    case .groupFromOldest: try await checks.groupFromOldest()
    case .separateGroups: try await checks.separateGroups()
    case .redelivery: try await checks.redelivery()
    case .acknowledgement: try await checks.acknowledgement()
    case .progress: try await checks.progress()
    case .release: try await checks.release()
    case .rejection: try await checks.rejection()
    case .cancellation: try await checks.cancellation()
    }
  }
}
