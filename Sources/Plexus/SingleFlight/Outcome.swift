// @unchecked Sendable and unchecked exclusivity: the fields are set by the task that makes the object, and do
// not change any more once another task can see it.

/// The outcome of a fetch, of reading a stored copy, or of a load: one object for all that wait for it.
///
/// It is not generic, so that waiting, retrying and resuming are compiled once. An outcome with a value is
/// a ``ValueOutcome`` of the type that its flight was made for.
@usableFromInline
class Outcome: @unchecked Sendable {
  /// The kinds of outcomes.
  @usableFromInline
  enum Kind: UInt8, Sendable {
    /// A value that takes the place of whatever is in memory.
    case value
    /// A value for the waiting callers, which is not kept.
    case transient
    /// A stored copy in place of a fetched value.
    case restored
    /// No value, because of ``Outcome/error``.
    case failure
    /// No value, because the work was cancelled.
    case cancelled
  }

  @exclusivity(unchecked) @safe
  @usableFromInline final var kind: Kind
  /// The error of the fetch, also beside a stale value that is the answer in its place.
  @exclusivity(unchecked) @safe
  @usableFromInline final var error: (any Error)?
  @exclusivity(unchecked) @safe
  @usableFromInline final var source = ResponseSource.fetch
  /// Whether the value is past its time to live.
  @exclusivity(unchecked) @safe
  @usableFromInline final var isStale = false
  /// Whether the value has changed at its origin since, so that it is a fallback only.
  @exclusivity(unchecked) @safe
  @usableFromInline final var isOutdated = false
  /// Whether the fetch has confirmed the value instead of bringing a new one.
  @exclusivity(unchecked) @safe
  @usableFromInline final var isRevalidated = false
  /// The time at which the value was fetched or stored.
  @exclusivity(unchecked) @safe
  @usableFromInline final var storedAt = Nanoseconds.min
  /// The time until which the value is fresh.
  @exclusivity(unchecked) @safe
  @usableFromInline final var deadline = Nanoseconds.min
  @exclusivity(unchecked) @safe
  @usableFromInline final var validator: String?
  @exclusivity(unchecked) @safe
  @usableFromInline final var terms = ValueTerms()
  /// What is known of a failed fetch.
  @exclusivity(unchecked) @safe
  @usableFromInline final var failure: Outcome.Failure?

  @usableFromInline
  init(_ kind: Kind, error: (any Error)? = nil) {
    self.kind = kind
    self.error = error
  }

  /// Whether this is a value that no cacher can have.
  @usableFromInline final var isNew: Bool { kind == .value || kind == .transient }

  /// Whether a failed fetch may be answered with this value.
  @usableFromInline
  final func allowsFallback(_ grounds: ValueTerms.FallbackGrounds, at now: Nanoseconds) -> Bool {
    terms.allowsFallback(grounds, until: deadline, at: now)
  }
}

/// An outcome with a value.
@usableFromInline
final class ValueOutcome<Value: Sendable>: Outcome, @unchecked Sendable {
  @usableFromInline let value: Value

  @inlinable
  init(_ value: Value, _ kind: Kind = .value) {
    self.value = value
    super.init(kind)
  }
}

extension Outcome {
  /// What is known of a fetch that has failed.
  @usableFromInline
  final class Failure: Sendable {
    /// The reasons why an older value may be the answer.
    @usableFromInline let grounds: ValueTerms.FallbackGrounds
    /// How long the failure is remembered.
    @usableFromInline let memory: Nanoseconds
    /// The value in memory that was to be renewed.
    ///
    /// It can be the answer even though it has been evicted since, but does not come back into memory. It
    /// cannot once memory has been cleared: ``EntryState/allowsPrevious``.
    @usableFromInline let previous: Outcome?
    /// The stored copy, which comes into memory if there is no value.
    @usableFromInline let stored: Outcome?

    init(
      grounds: ValueTerms.FallbackGrounds,
      memory: Nanoseconds,
      previous: Outcome?,
      stored: Outcome?
    ) {
      self.grounds = grounds
      self.memory = memory
      self.previous = previous
      self.stored = stored
    }
  }
}
