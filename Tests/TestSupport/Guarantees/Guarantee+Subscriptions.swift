extension Guarantee {
  public static let messagesAreUnboundedByDefault = Guarantee(
    .subscriptions,
    """
    By default, subscribers of messages, events, firings, changes and shared sequences lose \
    nothing.
    """
  )

  public static let statesSkipToTheNewestByDefault = Guarantee(
    .subscriptions,
    """
    By default, subscribers of data and paged publishers, multiplexers, map entries, stores and \
    page stores skip to the newest state; streams and subscriptions behave alike.
    """
  )

  public static let handlersSeeEverythingByDefault = Guarantee(
    .subscriptions,
    "By default, handlers are called for every element, also for every state."
  )

  public static let policiesLimitBuffers = Guarantee(
    .subscriptions,
    """
    `.unbounded` loses nothing, `.bufferingNewest` skips to the newest elements, and \
    `.bufferingOldest` rejects elements that do not fit.
    """
  )

  public static let mixedPoliciesStayWithinLimits = Guarantee(
    .subscriptions,
    """
    Handlers with different policies on one actor stay within their limits, in a time that does \
    not depend on the limits.
    """
  )

  public static let policiesDoNotAffectOtherReaders = Guarantee(
    .subscriptions,
    "The policy of one reader does not affect the others."
  )

  public static let droppedCountIncludesReplays = Guarantee(
    .subscriptions,
    """
    ``Subscription/droppedCount`` is the number of elements that the policy has dropped, including \
    an overwritten replay.
    """
  )

  public static let copiesShareOnePosition = Guarantee(
    .subscriptions,
    "Copies of a subscription share one position, and a loop can be continued after a `break`."
  )

  public static let sharedIterationStopsWithAMessage = Guarantee(
    .subscriptions,
    "Two tasks that iterate over one subscription stop the program with a message."
  )

  public static let bufferedReadsStayOnTheActor = Guarantee(
    .subscriptions,
    "A buffered element is read without leaving the caller's actor."
  )

  public static let subscriptionsRetainNothingRead = Guarantee(
    .subscriptions,
    """
    A subscription retains nothing before its position, and releases everything when its loop is \
    cancelled.
    """
  )

  public static let closuresRunOnTheirActor = Guarantee(
    .subscriptions,
    """
    A closure that is written on the main actor runs there; one that captures its actor runs on \
    that actor.
    """
  )

  public static let tokensCallTheirClosureOnce = Guarantee(
    .subscriptions,
    """
    A token calls its closure once. Releasing its last reference cancels it. It equals only \
    itself.
    """
  )

  public static let bagsCancelInOrder = Guarantee(
    .subscriptions,
    """
    A bag cancels its tokens in order, together or when it is released. It counts active tokens, \
    and can be used again.
    """
  )

  public static let millionsOfDeliveriesLoseNothing = Guarantee(
    .subscriptions,
    "Of millions of deliveries between threads, none is lost, duplicated or out of order."
  )

  public static let subscriberCountsYieldEveryChange = Guarantee(
    .subscriptions,
    """
    `waitForSubscriber()` returns when there is a subscriber; `subscriberCounts()` yields every \
    change of the number.
    """
  )

  public static let sharedFailuresFollowBufferedElements = Guarantee(
    .subscriptions,
    """
    The failure of a shared sequence is an end: it reaches every subscriber and handler after what \
    its buffering policy keeps.
    """
  )
}
