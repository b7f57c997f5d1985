extension Guarantee {
  public static let nodesFetchOnce = Guarantee(
    .sharedCaches,
    "While the engine answers, all nodes together fetch a key once."
  )

  public static let announcementsWakeNodes = Guarantee(
    .sharedCaches,
    "Nodes that wait for a fetch are woken by an announcement."
  )

  public static let renewalsWakeNoNode = Guarantee(
    .sharedCaches,
    "Renewing a lease wakes no node that waits for it."
  )

  public static let fetchesOfDeadNodesAreTakenOver = Guarantee(
    .sharedCaches,
    """
    The fetch of a node that has died is taken over when its lease ends; a fetch that takes longer \
    keeps its lease.
    """
  )

  public static let outdatedLeasesStoreNothing = Guarantee(
    .sharedCaches,
    """
    Nothing is stored under a lease that is older than a removal, a change at the origin, or \
    another value.
    """
  )

  public static let failuresReachAllNodes = Guarantee(
    .sharedCaches,
    "A failed fetch fails once for all nodes that wait, with its kind."
  )

  public static let tagRemovalsReachEveryNode = Guarantee(
    .sharedCaches,
    """
    A removal by tags reaches every node and every entry with the tag, also entries that no node \
    has in memory, and nothing that was fetched before it is stored.
    """
  )

  public static let everyTextIsAKey = Guarantee(
    .sharedCaches,
    "Every text is a key or a tag, and equal texts are the same key on every node."
  )

  public static let changesAreFollowedEverywhere = Guarantee(
    .sharedCaches,
    "What one node changes, the others follow."
  )

  public static let clearsWaitForReplicas = Guarantee(
    .sharedCaches,
    """
    With `RedisOptions.clearReplicas`, a clear returns once the replicas have acknowledged it; \
    otherwise it throws, and stays owed until they have. No other command waits for the replicas.
    """
  )

  public static let tagRefreshesReachKnownKeys = Guarantee(
    .sharedCaches,
    """
    A refresh by tags reaches all nodes for the keys that its node has; entries of other keys are \
    stale for that node only, until it has fetched.
    """
  )

  public static let clearEverywhereOutlastsTrust = Guarantee(
    .sharedCaches,
    """
    After a clear everywhere no request is answered with an older value; the clear waits until the \
    trust of nodes that do not react has ended.
    """
  )

  public static let nearLeasesLimitCopies = Guarantee(
    .sharedCaches,
    """
    A node that does not hear the engine uses copies for the near lease, and none after that or \
    after a reconnection without a look.
    """
  )

  public static let knownRemovalsStay = Guarantee(
    .sharedCaches,
    "A removal that a node knows is not undone by an engine that restarts with less."
  )

  public static let losslessRestartsEmptyNoCache = Guarantee(
    .sharedCaches,
    "A restart that loses nothing empties no cache."
  )

  public static let nodesNeverGoBack = Guarantee(
    .sharedCaches,
    "A node does not go back to something older than it has returned, also as a fallback."
  )

  public static let engineMeasuresAge = Guarantee(
    .sharedCaches,
    "The age of a value is that of the engine."
  )

  public static let foreignEntriesAreMisses = Guarantee(
    .sharedCaches,
    "Entries of another schema, and damaged ones, are not there."
  )

  public static let keysChangedByOthersAreFetchedOnce = Guarantee(
    .sharedCaches,
    """
    With a Redis server, a key that another program has changed is fetched once, delays no other \
    key, and can be cleared; a damaged space is used again.
    """
  )

  public static let engineFailsNoRequest = Guarantee(
    .sharedCaches,
    "No request fails because of the engine, or waits longer than its timeout."
  )

  public static let closingWaitsForNoSingleCache = Guarantee(
    .sharedCaches,
    """
    An engine is closed without waiting for one cache after the other, also in a task that is \
    cancelled.
    """
  )

  public static let trustedCopiesAskNothing = Guarantee(
    .sharedCaches,
    "A hit of a copy asks nothing of the engine until the trust in it ends."
  )

  public static let severalKeysTakeOneRoundTrip = Guarantee(
    .sharedCaches,
    """
    A fetch of several keys looks them up in one round trip, and fetches what no other node has or \
    fetches.
    """
  )

  public static let statisticsTimeOwnFetches = Guarantee(
    .sharedCaches,
    """
    The statistics of a cache with a shared tier count the time of its own fetches, also of \
    several keys.
    """
  )

  public static let largeOperationsAreSentInParts = Guarantee(
    .sharedCaches,
    """
    With a Redis server, operations on many keys are sent in parts, all before the first reply is \
    awaited; a part that fails fails for its keys only.
    """
  )

  public static let readsNeedNoScript = Guarantee(
    .sharedCaches,
    "With a Redis server, an entry is read without a script exactly if the script would find it."
  )

  public static let simultaneousReadsAreAnsweredTogether = Guarantee(
    .sharedCaches,
    """
    With a Redis server, callers that read at the same time are answered together; one that is \
    cancelled leaves alone, and none waits longer than a read without an answer.
    """
  )

  public static let storedValuesFollowOtherProcesses = Guarantee(
    .sharedCaches,
    """
    A stored value follows the changes of other processes, also if its process has not looked for \
    it.
    """
  )

  public static let storedValuesDoNotReplaceLaterChanges = Guarantee(
    .sharedCaches,
    """
    A stored value does not replace a later change of another process, even if it could not be \
    sent at first. If the engine's entry has changed or is missing, all processes fetch the key \
    again.
    """
  )

  public static let refusedValuesAreSentAgain = Guarantee(
    .sharedCaches,
    "A value that was refused is sent again after five minutes."
  )

  public static let owedRemovalsEmptyThreeTimesAtMost = Guarantee(
    .sharedCaches,
    """
    A removal that replicas have to acknowledge stays owed until they have it, and empties the \
    cache at most three times.
    """
  )

  public static let equalNamesAreEqualOnTheServer = Guarantee(
    .sharedCaches,
    "Names of spaces, schemas, keys and tags that are equal in Swift are equal on the server."
  )

  public static let unheardEnginesAreNoFallback = Guarantee(
    .sharedCaches,
    "An entry of the engine is no fallback after the engine was not heard for too long."
  )

  public static let lookupsFromBeforeAClearAreNotShared = Guarantee(
    .sharedCaches,
    """
    No request shares a look or fetch from before the time at which a clear no longer waited for \
    its process.
    """
  )

  public static let returnedValuesOutdateOlderEntries = Guarantee(
    .sharedCaches,
    """
    A process does not go back to an entry that was stored before the fetch of a value that it has \
    returned.
    """
  )

  public static let faultsReturnNothingOlderThanAClear = Guarantee(
    .sharedCaches,
    """
    Processes under load return nothing older than a clear while connections, processes and \
    servers fail.
    """
  )

  public static let clearsEndDespiteEvictions = Guarantee(
    .sharedCaches,
    "A clear everywhere ends although the server evicts at once what it stores."
  )

  public static let outagesCostOneQueryPerRequest = Guarantee(
    .sharedCaches,
    """
    Without a time to keep, an outage of the server costs the origin a query for each request at \
    most.
    """
  )

  public static let conformanceRefusesHastyRemovals = Guarantee(
    .sharedCaches,
    """
    The conformance suite refuses an engine whose removals do not wait for nodes that hear \
    nothing.
    """
  )

  public static let slowValuesKeepNoOthersWaiting = Guarantee(
    .sharedCaches,
    """
    A value that the engine takes too slowly does not keep others from being read, and large \
    values that wait are bounded.
    """
  )

  public static let earlyRenewalsKeepFreshValues = Guarantee(
    .sharedCaches,
    """
    A fresh value that is renewed early stays if the shared engine has evicted its entry and the \
    renewal fails; an expired one is not used after a failure.
    """
  )

  public static let schemasCostTwoCaches = Guarantee(
    .sharedCaches,
    """
    With a Redis server, two schemas live side by side at the cost of two caches: each key is \
    fetched once for each of them, and a fetch of one delays none of the other.
    """
  )

  public static let clearsReachAllSchemas = Guarantee(
    .sharedCaches,
    """
    With a Redis server, a clear, an outdating and a stored value of one schema reach the entries, \
    leases and copies of all schemas.
    """
  )

  public static let schemasShareNoEntry = Guarantee(
    .sharedCaches,
    "With a Redis server, schemas and keys can be any text, and share no entry."
  )

  public static let entriesStayAsLongAsUsable = Guarantee(
    .sharedCaches,
    """
    Entries stay on a Redis server as long as their cache can use them, and for the retention of \
    their space at most.
    """
  )

  public static let waitersAnswerWithStaleValues = Guarantee(
    .sharedCaches,
    """
    A process that waits for the failing fetch of another one answers with its stale value, as the \
    other one does.
    """
  )

  public static let policyJudgesOtherProcesses = Guarantee(
    .sharedCaches,
    "The policy judges the failure of another process."
  )

  public static let clearedValuesAreNoFallback = Guarantee(
    .sharedCaches,
    "A value that is cleared during a wait is no fallback."
  )

  public static let clearsElsewhereEndFallbacks = Guarantee(
    .sharedCaches,
    "A fallback that is cleared elsewhere is none any longer."
  )

  public static let endedLeasesAreLookedUpAgain = Guarantee(
    .sharedCaches,
    """
    A request that waits for another process looks again when its own process ends the lease by a \
    refresh or a removal.
    """
  )

  public static let softTimeoutAnswersWaitingProcesses = Guarantee(
    .sharedCaches,
    "The soft timeout answers a process that waits for another one."
  )

  public static let staleValuesAnswerDuringRenewalsElsewhere = Guarantee(
    .sharedCaches,
    """
    A stale value that may be served while it is renewed answers at once while another process \
    renews it: the lease of a key is no change of its value.
    """
  )

  public static let staleValuesAnswerDuringFailuresElsewhere = Guarantee(
    .sharedCaches,
    """
    A stale value that may be served while it is renewed answers requests that arrive while a \
    failure in another process is noticed.
    """
  )

  public static let severalKeysAreOneFetchWithoutTheEngine = Guarantee(
    .sharedCaches,
    "Without the engine, several keys are one fetch."
  )

  public static let waitingKeysAreOneFetchWithoutTheEngine = Guarantee(
    .sharedCaches,
    "Keys that wait for another process are one fetch when the engine is gone."
  )

  public static let batchesKeepTheirWindowWithoutTheEngine = Guarantee(
    .sharedCaches,
    "A batch keeps its window and its largest size without the engine."
  )

  public static let copiesAreKeptForTheTimeToKeep = Guarantee(
    .sharedCaches,
    """
    Copies are kept for the time to keep since the engine was heard, values that are fetched \
    meanwhile since the start of their fetch.
    """
  )

  public static let keptValuesNeedALookAfterReconnecting = Guarantee(
    .sharedCaches,
    "No kept value is used after a reconnection without a look."
  )

  public static let clearsWaitForKeptCopies = Guarantee(
    .sharedCaches,
    """
    A clear everywhere waits until a process without the server keeps no copy, also after lost \
    registrations.
    """
  )

  public static let keptCopiesHideOutages = Guarantee(
    .sharedCaches,
    "With a time to keep, an outage of the server is none of the origin."
  )

  public static let copiesNeedTheServerByDefault = Guarantee(
    .sharedCaches,
    "By default, no copy is used without the server, not even as a fallback."
  )

  public static let requestsOfManyKeysFetchInOneProcess = Guarantee(
    .sharedCaches,
    "A request of many keys is fetched by one process only."
  )

  public static let failedRemovalsAreRepeated = Guarantee(
    .sharedCaches,
    "A removal that failed is repeated, although no key of it is used."
  )

  public static let closingPaysWhatIsOwed = Guarantee(
    .sharedCaches,
    "An engine pays what it owes before it closes, or throws."
  )

  public static let rejectedValuesAreReportedOnce = Guarantee(
    .sharedCaches,
    "A value that the outbox does not take is fetched by each process, kept, and reported once."
  )

  public static let slowValuesAreNotSentAgain = Guarantee(
    .sharedCaches,
    "A value that is too slow delays no other one, and is not sent again."
  )

  public static let nodesHoldInEveryOrder = Guarantee(
    .sharedCaches,
    """
    In every order of jobs, nodes fetch once, and no request after a clear, a refresh or a store \
    is answered with something older.
    """
  )

  public static let lostLeasesAreNotGrantedAgain = Guarantee(
    .sharedCaches,
    "The engine in memory never grants a lost lease or epoch again."
  )

  public static let cachersAreCheckedByOneSuite = Guarantee(
    .sharedCaches,
    "Cachers are checked by one suite."
  )

  public static let enginesAreCheckedByOneSuite = Guarantee(
    .sharedCaches,
    "Engines are checked by one suite."
  )

  public static let lateAnswersExtendNoTrust = Guarantee(
    .sharedCaches,
    "The trust in copies is not extended by an answer from before its end."
  )
}
