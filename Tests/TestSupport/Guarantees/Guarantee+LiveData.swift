extension Guarantee {
  public static let entriesAreStates = Guarantee(
    .liveData,
    """
    An entry of a map has the methods of a multiplexer for its key, and is a state for streams, \
    closures and zippers. It keeps the map alive, its streams do not.
    """
  )

  public static let liveSubscriptionsShareOneFetch = Guarantee(
    .liveData,
    """
    Live subscriptions fetch a missing value once for all of them and for requests. They fetch \
    stale values, and no fresh ones.
    """
  )

  public static let shortestIntervalCounts = Guarantee(
    .liveData,
    """
    Intervals start with the subscription. Of several, the shortest counts, and several due at \
    once cause one fetch.
    """
  )

  public static let signalsFetchFreshValues = Guarantee(
    .liveData,
    "A signal fetches even a fresh value, and joins a fetch in flight."
  )

  public static let clearsCauseLiveFetches = Guarantee(
    .liveData,
    """
    A refresh and a clear cause a fetch. After `clearAll()`, live subscriptions wait for the next \
    request, signal or subscription.
    """
  )

  public static let failedLiveFetchesWait = Guarantee(
    .liveData,
    "A failed fetch waits for the next signal, interval or refresh."
  )

  public static let nothingRunsWithoutLiveSubscriptions = Guarantee(
    .liveData,
    "Without live subscriptions nothing runs; they do not keep the cache alive."
  )

  public static let liveKeysAreNotEvicted = Guarantee(
    .liveData,
    "A key with a live subscription is not evicted."
  )

  public static let liveSubscriptionsHaveTheirPolicy = Guarantee(
    .liveData,
    "A live subscription has its own buffering policy."
  )

  public static let failedIntervalsKeepValuesFresh = Guarantee(
    .liveData,
    "A failed fetch for an interval or a signal leaves a fresh value fresh."
  )

  public static let failedRefreshesKeepValuesOutdated = Guarantee(
    .liveData,
    "A failed fetch for a refresh leaves the value outdated."
  )

  public static let rememberedFailuresHoldForLiveData = Guarantee(
    .liveData,
    "A remembered failure holds for live subscriptions that start meanwhile."
  )

  public static let signalsIgnoreRememberedFailures = Guarantee(
    .liveData,
    "An interval, a signal, a refresh and a clear fetch in spite of a remembered failure."
  )

  public static let liveDataAgreesWithASequentialModel = Guarantee(
    .liveData,
    """
    In any order of requests, live subscriptions, failures, refreshes and clears, the results and \
    the number of fetches are those of a simple sequential model.
    """
  )

  public static let interruptedLiveRefreshesFetchAgain = Guarantee(
    .liveData,
    "A live subscription fetches after a refresh, also if an update cuts off that fetch."
  )

  public static let interruptedRefreshesFetchAgain = Guarantee(
    .liveData,
    "A refresh without callers is fetched when an update cuts off the fetch before."
  )
}
