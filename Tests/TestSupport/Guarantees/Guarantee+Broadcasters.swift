extension Guarantee {
  public static let subscribersAreRegisteredAtOnce = Guarantee(
    .broadcasters,
    """
    A subscriber is registered when the call that subscribes returns: elements sent afterwards \
    reach it, even before it iterates.
    """
  )

  public static let replayJoinsLiveDelivery = Guarantee(
    .broadcasters,
    "Replayed and live elements join without a gap and without a repetition."
  )

  public static let statesAreReplayedImmediately = Guarantee(
    .broadcasters,
    "A subscriber to states receives the newest one immediately, regardless of other subscribers."
  )

  public static let allSubscribersSeeOneOrder = Guarantee(
    .broadcasters,
    """
    All subscribers of a source receive its elements in one order, which preserves the program \
    order of each sending thread.
    """
  )

  public static let waitersResumeInSubscriptionOrder = Guarantee(
    .broadcasters,
    "Waiters are resumed in the order in which they subscribed."
  )

  public static let handlersOfOneActorKeepSubscriptionOrder = Guarantee(
    .broadcasters,
    "Synchronous handlers of one actor are called in subscription order, message by message."
  )

  public static let suspendedReadersKeepSubscriptionOrder = Guarantee(
    .broadcasters,
    """
    Suspended handlers and loops are resumed in subscription order, whatever their buffering \
    policies; the system decides in which order the resumed tasks run.
    """
  )

  public static let suspendedHandlersDelayNoOther = Guarantee(
    .broadcasters,
    """
    A handler that suspends receives all elements in order, never overlaps itself and delays no \
    other subscriber.
    """
  )

  public static let nestedElementsFollowTheCurrentOne = Guarantee(
    .broadcasters,
    "An element that is sent while another one is delivered follows it, for all subscribers."
  )

  public static let cancelledLoopsEnd = Guarantee(
    .broadcasters,
    """
    A loop whose task is cancelled ends, however much is buffered: after at most 15 further \
    elements with `.unbounded`, otherwise immediately.
    """
  )

  public static let handlersDoNotStartAfterCancellation = Guarantee(
    .broadcasters,
    """
    A handler is not started after its token was cancelled on its own actor or inside the handler.
    """
  )

  public static let cancelStopsHandlers = Guarantee(
    .broadcasters,
    "After any call of `cancel()` has returned, the handler is not started again."
  )

  public static let handlersYieldTheirActor = Guarantee(
    .broadcasters,
    "Handlers on an actor yield it after about a millisecond of calls."
  )

  public static let tokensCancelSuspendedHandlers = Guarantee(
    .broadcasters,
    "Cancelling a token cancels the task in which its handler is suspended."
  )

  public static let subscribersDuringDeliveryReceiveTheNext = Guarantee(
    .broadcasters,
    """
    A subscriber that is added during a delivery receives the next element, after the documented \
    replay.
    """
  )

  public static let droppedStreamsUnsubscribe = Guarantee(
    .broadcasters,
    """
    Dropping a stream or cancelling its task unsubscribes, and the next reading of the subscriber \
    count reflects it.
    """
  )

  public static let tokensAndOwnersReleaseHandlers = Guarantee(
    .broadcasters,
    """
    Cancelling or releasing a token, and releasing an owner, remove a handler and release its \
    closure.
    """
  )

  public static let releasedSourcesEndTheirStreams = Guarantee(
    .broadcasters,
    """
    Releasing the last reference to a source ends its streams after the elements sent before, and \
    releases its handlers. Streams, loops and tokens do not keep a source alive.
    """
  )

  public static let finishedSourcesReleaseLateHandlers = Guarantee(
    .broadcasters,
    "A source that finishes while a handler is being registered releases the handler, too."
  )

  public static let elementsAreReleasedAfterTheLastReader = Guarantee(
    .broadcasters,
    """
    An element is released when the last subscriber that can read it has read it or unsubscribed.
    """
  )

  public static let readElementsAreReleasedWhileReadersWait = Guarantee(
    .broadcasters,
    "An element that all subscribers have read is released once they wait."
  )

  public static let sharedIterationReadsOnlySentElements = Guarantee(
    .broadcasters,
    """
    Two tasks that iterate over one subscription stop the program, and receive only elements that \
    were sent.
    """
  )

  public static let loopsYieldTheirActor = Guarantee(
    .broadcasters,
    """
    A loop over a subscription yields its actor to other tasks, however many elements are \
    buffered.
    """
  )

  public static let noStateFromBeforeAReset = Guarantee(
    .broadcasters,
    "After a reset, a sign-out or a clear, no subscriber receives an earlier state."
  )

  public static let lateResultsHaveNoEffect = Guarantee(
    .broadcasters,
    "A result that arrives after a newer change has no effect."
  )

  public static let noLockWhileUserCodeRuns = Guarantee(
    .broadcasters,
    """
    The library holds no lock while your code runs: closures, `deinit`, comparisons, and resumed \
    tasks. The exceptions are the `==` of the keys of a map, and the comparison and hashing of \
    cachers in a repository.
    """
  )

  public static let sendingIsSynchronous = Guarantee(
    .broadcasters,
    """
    Sending is synchronous, and possible from the main actor, another actor, any thread and any \
    callback.
    """
  )

  public static let sendingStartsNoTask = Guarantee(
    .broadcasters,
    "Sending, changing a state, posting and touching start no task."
  )

  public static let timeComesFromTheInjectedClock = Guarantee(
    .broadcasters,
    "Time is measured by the injected clock, or by the system's continuous clock."
  )

  public static let publicTypesAreSendable = Guarantee(
    .broadcasters,
    "Every public type can be passed to another task."
  )

  public static let forwardedSourcesFollowAllRules = Guarantee(
    .broadcasters,
    """
    A handler on a broadcaster that forwards another source's subscription follows all rules of \
    that source.
    """
  )
}
