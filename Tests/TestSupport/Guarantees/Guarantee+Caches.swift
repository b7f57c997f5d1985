extension Guarantee {
  public static let requestsShareOneFetch = Guarantee(
    .caches,
    "Concurrent requests share one fetch, and all callers receive the same response."
  )

  public static let hitDoesNotSuspend = Guarantee(
    .caches,
    "A hit does not suspend, stays on the caller's actor, and allocates nothing."
  )

  public static let failuresReachAllCallers = Guarantee(
    .caches,
    """
    A failure without a cached value reaches all callers of the fetch. It is remembered only for \
    `failureTimeToLive`.
    """
  )

  public static let failuresKeepTheValue = Guarantee(
    .caches,
    """
    A failed fetch never drops the value. If the policy allows it, the value is returned as stale \
    with the error; its deadline is unchanged.
    """
  )

  public static let cancelledCallersReturnImmediately = Guarantee(
    .caches,
    """
    A cancelled caller returns immediately, without affecting the fetch and the other callers, and \
    in constant time among 100,000.
    """
  )

  public static let lastCallerFollowsThePolicy = Guarantee(
    .caches,
    """
    When the last caller leaves, the fetch is finished and stored, or cancelled, according to the \
    policy. No other caller receives its cancellation. A `CancellationError` that the fetch itself \
    throws is a failure.
    """
  )

  public static let clearDetachesTheFetch = Guarantee(
    .caches,
    """
    `clear()` detaches the fetch in flight: its callers receive the result, which is not stored. A \
    request afterwards starts a new fetch, and `.unknown` is published.
    """
  )

  public static let clearIsDurable = Guarantee(
    .caches,
    "`clear()` returns when the removal is durable, and wins over a flush in progress."
  )

  public static let updateWinsOverFetches = Guarantee(
    .caches,
    """
    `update` changes the value atomically and wins over fetches, as `store` does. The value keeps \
    its age, its deadline and a pending refresh.
    """
  )

  public static let countAndKeysCoverMemory = Guarantee(
    .caches,
    "`count` and `keys` cover the values in memory, fresh or stale."
  )

  public static let prefetchRemembersNoFailure = Guarantee(
    .caches,
    """
    `prefetch` fetches missing and stale values to the end, remembers no failure and does not \
    change the hit rate.
    """
  )

  public static let keysCanBeSelected = Guarantee(
    .caches,
    """
    Keys can be refreshed and cleared together, listed or selected by a condition, which is \
    evaluated without a lock.
    """
  )

  public static let idleValuesAreStale = Guarantee(
    .caches,
    """
    A value that was not used for its time to idle is stale but not removed, and a request alone \
    does not make it fresh.
    """
  )

  public static let refreshAheadRenewsOnce = Guarantee(
    .caches,
    """
    Refresh-ahead renews a fresh value in the background, once, and after a failure not before \
    half of the remaining time has passed.
    """
  )

  public static let softTimeoutReturnsTheStaleValue = Guarantee(
    .caches,
    "A soft timeout returns the stale value; the fetch continues even if all callers have left."
  )

  public static let writeBehindWritesAndRetries = Guarantee(
    .caches,
    """
    Write-behind writes after the given time since the first change, and retries after a failure.
    """
  )

  public static let fetchesHaveTaskLocalsByPolicy = Guarantee(
    .caches,
    """
    A fetch has the task-local values of the caller that causes it if the policy says so. One that waits for another \
    fetch has none.
    """
  )

  public static let batchingWindowsShareAFetch = Guarantee(
    .caches,
    """
    Single requests within a batching window share a fetch. A full batch starts immediately, and \
    keys without callers are dropped.
    """
  )

  public static let droppedKeysDoNotFillABatch = Guarantee(
    .caches,
    "Keys whose callers have left, or that were stored meanwhile, do not fill a batch."
  )

  public static let batchFetchesReturnResultsPerKey = Guarantee(
    .caches,
    "A fetch of several keys can return a result per key."
  )

  public static let tagsClearTogether = Guarantee(
    .caches,
    """
    Tags clear and refresh values together, in time proportional to their number. Older stored \
    copies are not used.
    """
  )

  public static let optimisticUpdatesRollBack = Guarantee(
    .caches,
    """
    An optimistic update is visible immediately, and rolled back if its commit fails, unless a \
    newer value has arrived. Later updates are applied again.
    """
  )

  public static let optimisticUpdatesStayUntilCommitted = Guarantee(
    .caches,
    """
    An optimistic update stays on top of every value that is fetched or stored before its commit \
    has ended, until a fetch that started later ends. No cacher receives it before it is \
    committed.
    """
  )

  public static let committedUpdatesAreNotLost = Guarantee(
    .caches,
    """
    An optimistic update that is committed while its key is being fetched is not lost: one more \
    fetch follows.
    """
  )

  public static let statisticsCoverFetches = Guarantee(
    .caches,
    """
    Statistics include the hit rate, fetch times with failures and waits, and revalidations; a \
    repository sums them by id.
    """
  )

  public static let cacheEventsNameOutcomes = Guarantee(
    .caches,
    "Events include the outcomes and durations of fetches, and the causes of removals."
  )

  public static let scenariosOfOtherCachesHold = Guarantee(
    .caches,
    """
    Scenarios of dataloader, TanStack Query, Caffeine and FusionCache users hold for the caches, \
    too.
    """
  )

  public static let repositoryClearDetachesFirst = Guarantee(
    .caches,
    """
    Clearing a repository detaches the fetches of all members before it removes anything, and \
    nothing older returns.
    """
  )

  public static let repositoryClearCoversReleasedMembers = Guarantee(
    .caches,
    "Clearing a repository also removes the stored copies of members that were released before."
  )

  public static let refreshCausesOneMoreFetch = Guarantee(
    .caches,
    """
    A refresh during a fetch causes one more fetch, whatever the number of refreshes; requests \
    meanwhile receive the old value.
    """
  )

  public static let storedValuesWinOverFetches = Guarantee(
    .caches,
    """
    A stored value wins over the fetch in flight. Storing, refreshing and clearing end a \
    remembered failure.
    """
  )

  public static let cyclesFailInsteadOfDeadlocking = Guarantee(
    .caches,
    """
    A fetch that would wait for itself, directly or through a cycle, fails with an error instead \
    of a deadlock.
    """
  )

  public static let cyclesAreFoundThroughOtherTypes = Guarantee(
    .caches,
    """
    Cycles are also found through a zipper, the action of a debouncer that is flushed, and the \
    handlers of an event that is posted and waited for.
    """
  )

  public static let ownKeyRequestsThrow = Guarantee(
    .caches,
    """
    A request of the fetch's own key in a task that the fetch has started throws until the fetch \
    has ended, and does not fail the fetch. In a detached task, it waits, and `fetchTimeout` ends \
    the fetch.
    """
  )

  public static let fetchTimeoutIsAFailure = Guarantee(
    .caches,
    "`fetchTimeout` turns a fetch that does not end into an ordinary failure."
  )

  public static let expiredValuesAreFetchedOnce = Guarantee(
    .caches,
    """
    A value that expires under load is fetched once, with optional jitter; stale values are \
    returned immediately while one fetch renews them.
    """
  )

  public static let storedEntriesHaveTheTimeOfDay = Guarantee(
    .caches,
    """
    Stored entries have the time of day; one from the future, or too old, is stale without an \
    error.
    """
  )

  public static let timeToLiveContinuesDuringSleep = Guarantee(
    .caches,
    "A time to live continues while the machine sleeps, and a short one is measured exactly."
  )

  public static let callersRaiseThePriority = Guarantee(
    .caches,
    """
    A waiting caller raises the priority of the fetch. By default, its task-local values do not \
    reach the fetch.
    """
  )

  public static let policyDefaultsAreDocumented = Guarantee(
    .caches,
    """
    The defaults of a policy are the documented ones. Only errors that declare it are connectivity \
    failures.
    """
  )

  public static let retryDelaysDouble = Guarantee(
    .caches,
    """
    Waits between attempts double up to the cap, within the jitter. The number of attempts \
    includes the first.
    """
  )

  public static let fetchesReceiveThePreviousValue = Guarantee(
    .caches,
    """
    A fetch receives the previous value, its validator and the number of the attempt. It can \
    return a time to live and a validator, or that nothing has changed.
    """
  )

  public static let readingTheCachedValueFetchesNothing = Guarantee(
    .caches,
    "The cached value can be fresh or stale, and reading it fetches nothing."
  )

  public static let requestsCountOnce = Guarantee(
    .caches,
    "Every request counts once: a join is not a miss, and a cancellation is not a failure."
  )

  public static let severalKeysShareOneCall = Guarantee(
    .caches,
    """
    Several keys can be requested in one call: fresh values are used, fetches in flight are \
    joined, and a missing key fails alone.
    """
  )

  public static let subscribersCauseNoFetch = Guarantee(
    .caches,
    """
    A subscriber receives the current state and every change, and causes no fetch. Clearing \
    publishes `.unknown`.
    """
  )

  public static let mapsStayWithinCapacity = Guarantee(
    .caches,
    "A map never exceeds its capacity, by count or cost; without one, it keeps everything."
  )

  public static let oversizedValuesEvictNothing = Guarantee(
    .caches,
    "A value that costs more than the whole capacity is returned, not stored, and evicts nothing."
  )

  public static let frequentValuesOutliveOthers = Guarantee(
    .caches,
    "Frequently used values outlive values that are requested once."
  )

  public static let cachesRegisterWeakly = Guarantee(
    .caches,
    """
    Caches register in the shared repository unless you pass another. It holds them weakly, and a \
    failing member does not stop the others.
    """
  )

  public static let zippersStartAllAtOnce = Guarantee(
    .caches,
    """
    A zipper starts all requests at once and returns their results in order; `values()` cancels \
    the rest at the first failure.
    """
  )

  public static let unequalKeysUseNoMemory = Guarantee(
    .caches,
    """
    A key that is not equal to itself, such as NaN, is fetched for each caller and uses no memory.
    """
  )

  public static let rememberedFailuresAreBounded = Guarantee(
    .caches,
    "A bounded map also limits its remembered failures."
  )

  public static let longStaleValuesAreRemoved = Guarantee(
    .caches,
    """
    With a stale time to live, a map removes values that are stale for longer when new keys get \
    values, and only these.
    """
  )

  public static let directivesKeepStaleValues = Guarantee(
    .caches,
    """
    A stale value is kept for the times of its directives, and while its key has a subscriber, a \
    fetch in flight, a remembered failure, an optimistic update or an unwritten change.
    """
  )

  public static let releasedCachesEndTheirStreams = Guarantee(
    .caches,
    """
    Releasing a cache ends its streams and releases its contents, after the callers in flight have \
    received their results.
    """
  )

  public static let callersAgreeWithASequentialModel = Guarantee(
    .caches,
    "In every order of events, every caller receives the answer of a simple sequential model."
  )

  public static let unobservedFetchesDoNotBegin = Guarantee(
    .caches,
    """
    With `CachePolicy.UnobservedFetch.cancel`, no fetch begins or is stored after its callers have \
    left.
    """
  )

  public static let lastSubscriptionEndsItsFetch = Guarantee(
    .caches,
    """
    With `CachePolicy.UnobservedFetch.cancel`, the last live subscription of a key ends its fetch \
    in flight.
    """
  )

  public static let retriesFetchOnlyNeededKeys = Guarantee(
    .caches,
    "Another attempt to fetch several keys asks only for the keys that are still needed."
  )

  public static let directivesLimitSoftTimeouts = Guarantee(
    .caches,
    "The directives of a value limit the age of the value that a soft timeout returns."
  )

  public static let cancelledRequestsCountOnce = Guarantee(
    .caches,
    "Statistics count every request once, also in a cancelled task."
  )

  public static let fetchesCountsCalls = Guarantee(
    .caches,
    "`CacheStatistics.fetches` is the number of calls of the fetch closure."
  )

  public static let abandonedCountsOverdueCalls = Guarantee(
    .caches,
    """
    `CacheStatistics.abandoned` is the number of calls that are still running after their time \
    limit.
    """
  )

  public static let optimisticUpdatesDoNotFlicker = Guarantee(
    .caches,
    """
    An optimistic update does not flicker: it stays on top of values that are fetched, stored, \
    read from the cacher or confirmed as unchanged before its commit has ended.
    """
  )

  public static let updatesOnOptimisticChangesStay = Guarantee(
    .caches,
    """
    An update on top of an optimistic change stays, and is written, whether the change is \
    committed or fails.
    """
  )

  public static let updatesAgreeWithASimpleModel = Guarantee(
    .caches,
    """
    In any order of updates, optimistic updates, stores, fetches, refreshes, clears, evictions and \
    flushes, what is visible, what is written and what is counted is that of a simple model.
    """
  )

  public static let costsAreComputedOnce = Guarantee(
    .caches,
    """
    The cost of a value is computed once, and counted for the present value, also after a live \
    subscription or a rolled back update.
    """
  )

  public static let refreshesReturnFetchedValues = Guarantee(
    .caches,
    "A request of a refresh is answered with no update, optimistic update or rolled back value."
  )

  public static let committedChangesAreNotRepeated = Guarantee(
    .caches,
    """
    An optimistic change is not repeated on the value of an attempt that begins after its commit.
    """
  )
}
