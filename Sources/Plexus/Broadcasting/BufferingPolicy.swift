/// What is kept for a subscriber that is slower than the sender.
///
/// It is `AsyncStream`'s own type: `.unbounded` loses nothing, `.bufferingNewest(n)` skips ahead to
/// the newest `n` elements, `.bufferingOldest(n)` refuses new ones while `n` are waiting. A limit of
/// zero or less keeps nothing: an element reaches only a subscriber that waits for it.
///
/// Messages and events default to `.unbounded`, states to `.bufferingNewest(1)`.
public typealias BufferingPolicy<Element> = AsyncStream<Element>.Continuation.BufferingPolicy
