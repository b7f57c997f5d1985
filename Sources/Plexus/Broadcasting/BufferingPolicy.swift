/// The elements that are buffered for a subscriber that is slower than the sender.
///
/// This is the type of `AsyncStream`: `.unbounded` buffers all elements, `.bufferingNewest(n)` drops all but the newest
/// `n`, and `.bufferingOldest(n)` drops new elements while `n` are buffered. With a limit of zero or less, only a
/// subscriber that is waiting receives an element.
///
/// The default is `.unbounded` for messages and events, and `.bufferingNewest(1)` for states.
public typealias BufferingPolicy<Element> = AsyncStream<Element>.Continuation.BufferingPolicy
