extension Guarantee {
  public static let dispatchReduces = Guarantee(
    .stores,
    "An action has been reduced when `dispatch` returns, unless the store is busy."
  )

  public static let actionsPassCompletely = Guarantee(
    .stores,
    """
    An action passes middleware, reducer and subscribers completely before the next. Actions that \
    these dispatch are queued.
    """
  )

  public static let callsLeaveForeignActions = Guarantee(
    .stores,
    """
    A call processes actions of other threads for about a millisecond, and then leaves the rest. \
    Actions that an action dispatches are processed before the call returns.
    """
  )

  public static let effectIDsCancelEarlierEffects = Guarantee(
    .stores,
    """
    An effect with an id cancels earlier effects with that id, unless configured otherwise. Ids \
    belong to the store. `cancel(id:)` cancels all of them.
    """
  )

  public static let dispatchAndWaitIncludesEffects = Guarantee(
    .stores,
    "`dispatchAndWait` returns after the effects of its action, and the effects that these start."
  )

  public static let middlewareIsCalledInOrder = Guarantee(
    .stores,
    "Middleware is called in order and can drop, replace, add and delay actions."
  )

  public static let changesAreReal = Guarantee(
    .stores,
    """
    Changes begin with the current value. Only real changes follow, each with the exact previous \
    value.
    """
  )

  public static let selectorsRunOncePerAction = Guarantee(
    .stores,
    """
    A selector runs once when it is subscribed and once per action; selectors of one key path \
    share that.
    """
  )

  public static let storesEndTheirStreams = Guarantee(
    .stores,
    "Streams and effects end with the store, after the actions dispatched before."
  )

  public static let pagesAndAppsMatch = Guarantee(
    .stores,
    "The subscribers of a page receive page and app state of the same moment."
  )

  public static let pagesKeepTheirStore = Guarantee(
    .stores,
    """
    A page keeps the store of its app, does not count as its subscriber, and is freed when \
    released, which ends its streams.
    """
  )

  public static let consumersSeeEveryChange = Guarantee(
    .stores,
    """
    Closures of a consumer are called in the order in which they were added, for every change, \
    without coalescing.
    """
  )

  public static let laterConsumersWaitForAChange = Guarantee(
    .stores,
    """
    A closure that is added later is called at the next change, or immediately with \
    `firesImmediately`; without a state, it waits for the first.
    """
  )

  public static let cancelledBagsStartNoClosure = Guarantee(
    .stores,
    "No closure starts after its bag was cancelled; the bag counts its closures."
  )

  public static let storesAgreeWithASequentialModel = Guarantee(
    .stores,
    "With any number of dispatching threads, a store agrees with a sequential model."
  )

  public static let actionsAreRecorded = Guarantee(
    .stores,
    """
    A stream of actions has every action that reaches the reducer, in order; the state before is the \
    state after the preceding action.
    """
  )

  public static let logsKeepNothingWithoutReaders = Guarantee(
    .stores,
    "Records of posts and actions are made only while there is a reader, and end with it."
  )
}
