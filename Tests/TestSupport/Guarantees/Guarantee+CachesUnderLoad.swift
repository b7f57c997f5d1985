extension Guarantee {
  public static let valueTagsAreFenced = Guarantee(
    .caches,
    """
    Values can have tags of their own: the result of a fetch with a tag that was cleared meanwhile is not stored, \
    stored copies are judged by the tags of their values, and a change of a value moves it to its new tags.
    """
  )

  public static let fetchesStayWithinTheirLimit = Guarantee(
    .caches,
    """
    With `maximumConcurrentFetches`, no more fetches run at once, abandoned ones included. The others wait by \
    priority, then in order, and a waiting fetch ends with its last caller.
    """
  )

  public static let overloadIsRefused = Guarantee(
    .caches,
    """
    Beyond `maximumWaitingFetches`, a request gets a stale value if the policy allows one, and \
    `MultiplexerError.overloaded` otherwise, which is not remembered.
    """
  )

  public static let nestedFetchesShareAPlace = Guarantee(
    .caches,
    """
    A request inside a limited fetch uses the place of that fetch, also through other caches and by joining, so \
    that no fetch waits for itself. Several of them use it one after another.
    """
  )

  public static let bulkAnswersStoreAll = Guarantee(
    .caches,
    """
    Values that a fetch of several keys returns for other keys are stored as fresh ones, unless their \
    keys are in flight or have changed since the call began.
    """
  )

  public static let snapshotsOfEntriesAreOneMoment = Guarantee(
    .caches,
    """
    A snapshot of entries is of one moment, whatever changes meanwhile, and counts as no use of them; \
    its condition is called with no lock held.
    """
  )

  public static let snapshotsOfFetchesAreComplete = Guarantee(
    .caches,
    """
    From the first snapshot of fetches on, every fetch is in it from its launch to its end, also if its \
    key was cleared meanwhile.
    """
  )
}
