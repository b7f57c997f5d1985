/// Returns a state that combines the newest elements of other states.
///
/// ```swift
/// let name = CurrentValue("Ada")
/// let count = CurrentValue(1)
/// let title = combine(name, count) { name, count in "\(name) (\(count))" }
/// print(title.current)  // Prints "Ada (1)"
/// let token = title.observe { print($0) }  // Prints "Ada (1)"
/// count.value = 2  // Prints "Ada (2)"
/// ```
///
/// Whenever a source publishes, the combination publishes one element, made from the newest elements of all sources. It
/// does not remove duplicates: add ``StatefulBroadcaster/removeDuplicates()`` for that.
///
/// ## Consistency
///
/// Parts of one state are never combined from two different elements of it. This holds for the results of `select`, `map`
/// and `combine`, in any depth, and for a ``Store`` with its pages. A change of the state is one element of the
/// combination, however many parts it changes, and none if it changes no selected part.
///
/// ```swift
/// struct Player: Sendable { var position = 0, length = 10 }
/// let player = CurrentValue(Player())
/// let progress = combine(player.select(\.position), player.select(\.length)) { "\($0) of \($1)" }
/// let token = progress.observe { print($0) }  // Prints "0 of 10"
/// player.value = Player(position: 3, length: 4)  // Prints "3 of 4"
/// ```
///
/// No element is "3 of 10".
///
/// A broadcaster of your own that forwards another one counts as a source of its own. The combination has its elements in
/// their order, but can learn of them later than of other parts of the same state.
///
/// ## Subscribing and ending
///
/// The combination is a view. It is subscribed to the states behind its sources, once each, while it has subscribers
/// itself. A part of a ``PageStore`` also subscribes to the parent. The view keeps its sources alive, but its
/// subscribers do not. A source that has ended keeps its last element; the streams end when all sources have ended. You
/// do not have to store the view.
///
/// A source that is reset, such as a ``DataPublisher``, takes back the unread elements of the combination, too.
///
/// - Parameters:
///   - source: The sources, any number of them. Their types have to be known: an `any StatefulBroadcaster` cannot be
///     passed.
///   - transform: A closure that makes an element. It runs once per element, regardless of the number of subscribers,
///     with no lock held, as do the closures of the parts: on a thread that sends, or in a task that continues after
///     about a millisecond of work. It also runs on the thread of a subscriber that is added while an element is being
///     made, and on the thread that reads ``StatefulBroadcaster/current`` while there is no subscriber.
/// - Returns: The combination, whose new subscribers begin with the current element.
public nonisolated func combine<each Source: StatefulBroadcaster, Output: Sendable>(
  _ source: repeat each Source,
  transform: @escaping @Sendable (repeat (each Source).Element) -> Output
) -> some StatefulBroadcaster<Output> {
  Combination { draft in
    var steps: [Int] = []
    repeat steps.append(draft.place(each source))
    return steps
  } _: { inputs in
    var inputs = inputs
    return transform(repeat inputs.next((each Source).Element.self))
  }
}
