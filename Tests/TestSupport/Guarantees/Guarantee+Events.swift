extension Guarantee {
  public static let eventsReachTheirTypeAndScope = Guarantee(
    .events,
    """
    An event is delivered to the streams and handlers that are subscribed to exactly its type and \
    scope.
    """
  )

  public static let eventsAreRetainedByTheirRule = Guarantee(
    .events,
    """
    An event is not retained by default; a persistent event is retained by its rule, also if \
    generic code posts it.
    """
  )

  public static let plainEventsReachAllSubscribers = Guarantee(
    .events,
    "Without persistence, all subscribers receive the event, and it is not retained."
  )

  public static let clearImmediatelyStopsAtTheFirstSuccess = Guarantee(
    .events,
    "Under `clearImmediately`, subscribers receive it one after another until one succeeds."
  )

  public static let clearAfterAllReachesEachSubscriber = Guarantee(
    .events,
    """
    Under `clearAfterAllCurrentSubscribersNotified`, all current subscribers receive it, and one \
    success ends its retention.
    """
  )

  public static let neverClearRetainsRegardless = Guarantee(
    .events,
    """
    Under `neverClear`, it is retained regardless of results, and every later subscriber receives \
    it.
    """
  )

  public static let unhandledEventsAreRetained = Guarantee(
    .events,
    """
    If no subscriber succeeds, it is retained, in posting order, until a later subscriber \
    succeeds.
    """
  )

  public static let bufferedEventsAreSuccesses = Guarantee(
    .events,
    """
    For a stream, an event in its buffer is a success; with two streams, `clearImmediately` \
    delivers it to the first.
    """
  )

  public static let noResultIsSuccess = Guarantee(
    .events,
    "Returning no result is a success and throwing a failure, with every kind of registration."
  )

  public static let postAndWaitReturnsTheOutcome = Guarantee(
    .events,
    """
    ``EventBus/postAndWait(_:scope:)`` returns when every handler has ended, with the numbers of \
    notified subscribers and of successes, and whether the event is still retained.
    """
  )

  public static let cancelledWaitsLeaveHandlersRunning = Guarantee(
    .events,
    """
    Cancelling the caller of `postAndWait` ends the wait with an incomplete outcome; the handlers \
    still run.
    """
  )

  public static let postAndWaitRaisesPriority = Guarantee(
    .events,
    "The wait raises the priority of the handlers to that of the caller."
  )

  public static let queuedEventsAreDeliveredInPortions = Guarantee(
    .events,
    """
    Events that are queued behind a persistent one are delivered in portions by a task, not in one \
    turn of the thread that ended the wait.
    """
  )

  public static let hangingHandlersCanBeRemoved = Guarantee(
    .events,
    """
    A handler that hangs blocks no persistent event once it is removed: the events offered to it \
    have failed.
    """
  )

  public static let selfRemovingHandlersReportInASecond = Guarantee(
    .events,
    """
    A handler that removes itself while it handles a persistent event reports its result within a \
    second; afterwards, the event has failed for it.
    """
  )

  public static let handlerIDsAreNotKeptAlive = Guarantee(
    .events,
    "An object that serves as the id of a handler, and equals only itself, is not kept alive."
  )

  public static let nestedPostsAreQueued = Guarantee(
    .events,
    """
    A post inside a handler is queued behind the current event; a `postAndWait` that would wait \
    for itself is deferred, which its outcome reports.
    """
  )

  public static let eventsHaveOneOrderPerScope = Guarantee(
    .events,
    """
    There is one order for each type and scope; handlers of one actor are called in subscription \
    order, event by event.
    """
  )

  public static let eventsAreRetainedBeforeDelivery = Guarantee(
    .events,
    """
    An event is retained before it is delivered: a subscriber that is added during a post receives \
    it at most once.
    """
  )

  public static let offeredEventsKeepTheirPlace = Guarantee(
    .events,
    """
    A stream receives a retained event that is offered to it alone in its place among the others, \
    and no other stream is resumed by it.
    """
  )

  public static let retentionHasLimits = Guarantee(
    .events,
    """
    Events are retained separately for each type and scope, up to their limit, which evicts the \
    oldest, and for exactly their time to live.
    """
  )

  public static let handlersLiveAsLongAsTheirOwner = Guarantee(
    .events,
    """
    A handler lives as long as its token, its owner (which it does not keep alive), or until it is \
    removed by its id.
    """
  )

  public static let replacingReplacesTheHandler = Guarantee(
    .events,
    """
    `replacing` replaces a handler of the same id, type and scope; the new one is last in order. \
    Without it, both stay.
    """
  )

  public static let pendingEventsCanBeRemoved = Guarantee(
    .events,
    "Pending events can be read and removed; current subscribers still receive them."
  )

  public static let slowHandlersDelayNoOtherScope = Guarantee(
    .events,
    """
    A slow handler delays no event of another type or scope; the cost of a post depends on its own \
    subscribers only.
    """
  )

  public static let releasedBusesEndTheirStreams = Guarantee(
    .events,
    "The last reference to a bus ends its streams and releases its handlers."
  )

  public static let forwardedEventsCallHandlersAlike = Guarantee(
    .events,
    """
    A handler on a broadcaster that forwards events counts and is called like a handler of the \
    bus, except that `bufferingNewest` applies to retained events, too.
    """
  )

  public static let cancelledHandlersDoNotStart = Guarantee(
    .events,
    "An asynchronous handler does not start after it was cancelled on its own actor."
  )

  public static let postsAreRecorded = Guarantee(
    .events,
    """
    A stream of posts has every post, also without subscribers, in the order of its type and scope, \
    with its outcome once it has ended.
    """
  )
}
