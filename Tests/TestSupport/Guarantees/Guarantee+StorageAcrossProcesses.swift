extension Guarantee {
  public static let nodesFetchOnce = Guarantee(
    .storage,
    "While the engine answers, all nodes together fetch a key once."
  )

  public static let announcementsWakeNodes = Guarantee(
    .storage,
    "Nodes that wait for a fetch are woken by an announcement."
  )

  public static let renewalsWakeNoNode = Guarantee(
    .storage,
    "Renewing a lease wakes no node that waits for it."
  )

  public static let fetchesOfDeadNodesAreTakenOver = Guarantee(
    .storage,
    """
    The fetch of a node that has died is taken over when its lease ends; a fetch that takes longer \
    keeps its lease.
    """
  )

  public static let outdatedLeasesStoreNothing = Guarantee(
    .storage,
    """
    Nothing is stored under a lease that is older than a removal, a change at the origin, or \
    another value.
    """
  )

  public static let failuresReachAllNodes = Guarantee(
    .storage,
    "A failed fetch fails once for all nodes that wait, with its kind."
  )

  public static let tagRemovalsReachEveryNode = Guarantee(
    .storage,
    """
    A removal by tags reaches every node and every entry with the tag, also entries that no node \
    has in memory, and nothing that was fetched before it is stored.
    """
  )

  public static let everyTextIsAKey = Guarantee(
    .storage,
    "Every text is a key or a tag, and equal texts are the same key on every node."
  )

  public static let changesAreFollowedEverywhere = Guarantee(
    .storage,
    "What one node changes, the others follow."
  )

  public static let clearsWaitForReplicas = Guarantee(
    .storage,
    """
    With `RedisOptions.clearReplicas`, a clear returns once the replicas have acknowledged it; \
    otherwise it throws, and stays owed until they have. No other command waits for the replicas.
    """
  )

  public static let tagRefreshesReachKnownKeys = Guarantee(
    .storage,
    """
    A refresh by tags reaches all nodes for the keys that its node has; entries of other keys are \
    stale for that node only, until it has fetched.
    """
  )

  public static let clearEverywhereOutlastsTrust = Guarantee(
    .storage,
    """
    After a clear everywhere no request is answered with an older value; the clear waits until the \
    trust of nodes that do not react has ended.
    """
  )

  public static let nearLeasesLimitCopies = Guarantee(
    .storage,
    """
    A node that does not hear the engine uses copies for the near lease, and none after that or \
    after a reconnection without a look.
    """
  )

  public static let knownRemovalsStay = Guarantee(
    .storage,
    "A removal that a node knows is not undone by an engine that restarts with less."
  )

  public static let losslessRestartsEmptyNoCache = Guarantee(
    .storage,
    "A restart that loses nothing empties no cache."
  )

  public static let nodesNeverGoBack = Guarantee(
    .storage,
    "A node does not go back to something older than it has returned, also as a fallback."
  )

  public static let engineMeasuresAge = Guarantee(
    .storage,
    "The age of a value is that of the engine."
  )

  public static let foreignEntriesAreMisses = Guarantee(
    .storage,
    "Entries of another schema, and damaged ones, are not there."
  )

  public static let keysChangedByOthersAreFetchedOnce = Guarantee(
    .storage,
    """
    With a Redis server, a key that another program has changed is fetched once, delays no other \
    key, and can be cleared; a damaged space is used again.
    """
  )

  public static let cacheUsersNeedDocumentedRights = Guarantee(
    .storage,
    """
    With a Redis server, the user of a cache needs exactly the commands and keys of the article \
    for operators.
    """
  )

  public static let engineFailsNoRequest = Guarantee(
    .storage,
    "No request fails because of the engine, or waits longer than its timeout."
  )

  public static let wrongRepliesEndTheConnection = Guarantee(
    .storage,
    """
    With a Redis server, a reply that answers no command, or a wrong reply to the introduction, \
    ends the connection. A server that answers nothing but the introduction is asked less and less \
    often.
    """
  )

  public static let shiftedRepliesMixUpNoKeys = Guarantee(
    .storage,
    """
    With a Redis server whose replies are shifted, a lookup of several keys returns no value of \
    another key.
    """
  )

  public static let impossibleNumbersAreNotUsed = Guarantee(
    .storage,
    """
    A number that no Redis server gives is not used, and not sent to another server. A heartbeat \
    whose answer differs each time is repeated with pauses.
    """
  )

  public static let faultyServersCauseNoOlderAnswers = Guarantee(
    .storage,
    """
    With a Redis server whose clients are killed or paused, or that has no memory, another role, \
    or lost keys, no request fails, goes back to something older, or is answered with what was \
    cleared everywhere.
    """
  )

  public static let closingWaitsForNoSingleCache = Guarantee(
    .storage,
    """
    An engine is closed without waiting for one cache after the other, also in a task that is \
    cancelled.
    """
  )

  public static let trustedCopiesAskNothing = Guarantee(
    .storage,
    "A hit of a copy asks nothing of the engine until the trust in it ends."
  )

  public static let severalKeysTakeOneRoundTrip = Guarantee(
    .storage,
    """
    A fetch of several keys looks them up in one round trip, and fetches what no other node has or \
    fetches.
    """
  )

  public static let statisticsTimeOwnFetches = Guarantee(
    .storage,
    """
    The statistics of a cache with a shared tier count the time of its own fetches, also of \
    several keys.
    """
  )

  public static let largeOperationsAreSentInParts = Guarantee(
    .storage,
    """
    With a Redis server, operations on many keys are sent in parts, all before the first reply is \
    awaited; a part that fails fails for its keys only.
    """
  )

  public static let readsNeedNoScript = Guarantee(
    .storage,
    "With a Redis server, an entry is read without a script exactly if the script would find it."
  )

  public static let simultaneousReadsAreAnsweredTogether = Guarantee(
    .storage,
    """
    With a Redis server, callers that read at the same time are answered together; one that is \
    cancelled leaves alone, and none waits longer than a read without an answer.
    """
  )

  public static let connectionTimesAdvanceDuringSleep = Guarantee(
    .storage,
    "The times of a Redis connection advance while the machine sleeps."
  )

  public static let nameLookupsAreBounded = Guarantee(
    .storage,
    """
    The lookup of a Redis server's name ends with the time limit of the connection, keeps no \
    command waiting, and is not begun twice.
    """
  )

  public static let lateAddressesServeTheNextAttempt = Guarantee(
    .storage,
    """
    Addresses of a Redis server's name that came too late for an attempt to connect serve the next \
    one, and no later one.
    """
  )
}
