// @unchecked Sendable and unchecked exclusivity: the fields are set by the task that creates the object and do not
// change once another task can see it.

/// The outcome of a fetch, of reading a stored copy, or of a load, shared by all waiting callers.
///
/// The class is not generic, so that waiting, retrying and resuming are compiled once. An outcome with a value is
/// a ``ValueOutcome`` of the flight's value type.
@usableFromInline
class Outcome: @unchecked Sendable {
  /// The kind of an outcome.
  @usableFromInline
  enum Kind: UInt8, Sendable {
    /// A value that replaces the one in memory.
    case value
    /// A value that is passed to the waiting callers but not kept.
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
  /// The error of the fetch; can be set together with a stale value that is returned in its place.
  @exclusivity(unchecked) @safe
  @usableFromInline final var error: (any Error)?
  @exclusivity(unchecked) @safe
  @usableFromInline final var source = ResponseSource.fetch
  /// Whether the value is past its time to live.
  @exclusivity(unchecked) @safe
  @usableFromInline final var isStale = false
  /// Whether the value has changed at its origin, so that it serves only as a fallback.
  @exclusivity(unchecked) @safe
  final var isOutdated = false
  /// Whether one of its tags was cleared or refreshed since its fetch began: callers that require a refresh do not take it.
  @exclusivity(unchecked) @safe
  @usableFromInline final var isOvertaken = false
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
  /// Details of a failed fetch.
  @exclusivity(unchecked) @safe
  @usableFromInline final var failure: Outcome.Failure?

  @usableFromInline
  init(_ kind: Kind, error: (any Error)? = nil) {
    self.kind = kind
    self.error = error
  }

  /// Returns an outcome with a value, or throws the error.
  @usableFromInline
  final func get() throws -> Outcome {
    switch kind {
    case .value, .transient, .restored: return self
    case .failure, .cancelled: throw error ?? CancellationError()
    }
  }

  /// Whether the value is new, so that the cacher cannot contain it yet.
  @usableFromInline final var isNew: Bool { kind == .value || kind == .transient }

  /// Whether an older stored copy must not replace the value.
  @usableFromInline final var removesCopy: Bool { kind == .transient && !isOutdated }

  /// Returns whether this value can be returned while it is renewed.
  final func allowsRenewal(within policy: Nanoseconds, at now: Nanoseconds) -> Bool {
    terms.allowsRenewal(within: policy, until: deadline, at: now)
  }

  /// Returns whether a failed fetch can be answered with this value.
  @usableFromInline
  final func allowsFallback(_ grounds: ValueTerms.FallbackGrounds, at now: Nanoseconds) -> Bool {
    terms.allowsFallback(grounds, until: deadline, at: now)
  }
}

extension Outcome {
  /// Details of a failed fetch.
  @usableFromInline
  final class Failure: Sendable {
    /// The grounds for answering with an older value.
    @usableFromInline let grounds: ValueTerms.FallbackGrounds
    /// The time for which the failure is remembered.
    @usableFromInline let memory: Nanoseconds
    /// The value in memory that the fetch was to renew.
    ///
    /// It can be returned even if it has been evicted since, but is not inserted again. It cannot be returned once
    /// memory has been cleared: see ``EntryState/allowsPrevious``.
    @usableFromInline let previous: Outcome?
    /// The stored copy, which is inserted into memory if that has no value.
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
