extension Guarantee {
  public static let storedValuesFollowOtherProcesses = Guarantee(
    .storage,
    """
    A stored value follows the changes of other processes, also if its process has not looked for \
    it.
    """
  )

  public static let storedValuesDoNotReplaceLaterChanges = Guarantee(
    .storage,
    """
    A stored value does not replace a later change of another process, even if it could not be \
    sent at first. If the engine's entry has changed or is missing, all processes fetch the key \
    again.
    """
  )

  public static let largeValuesNeedListedRights = Guarantee(
    .storage,
    "Large values need only the rights that the article lists."
  )

  public static let statusCoversAllConnections = Guarantee(
    .storage,
    "The status and the health are those of all connections."
  )

  public static let refusedValuesAreSentAgain = Guarantee(
    .storage,
    "A value that was refused is sent again after five minutes."
  )

  public static let owedRemovalsEmptyThreeTimesAtMost = Guarantee(
    .storage,
    """
    A removal that replicas have to acknowledge stays owed until they have it, and empties the \
    cache at most three times.
    """
  )

  public static let sentinelsNeverGetThePassword = Guarantee(
    .storage,
    "A sentinel is never given the password of the server."
  )

  public static let renewedCredentialsLeaveNoTrace = Guarantee(
    .storage,
    """
    A renewal of credentials leaves no trace in the health once it has succeeded or its connection \
    has ended.
    """
  )

  public static let hangingCredentialsBlockNoConnection = Guarantee(
    .storage,
    "A call for credentials that does not end does not keep the engine from connecting."
  )

  public static let errorsShowNoPassword = Guarantee(
    .storage,
    "No error shows a part of a password."
  )

  public static let refusalsEndWithASuccess = Guarantee(
    .storage,
    "A refusal ends once a command of its kind has succeeded, however rare the kind is."
  )

  public static let hopelessConnectionsFailAtOnce = Guarantee(
    .storage,
    "Connecting fails at once only if other settings help."
  )

  public static let equalNamesAreEqualOnTheServer = Guarantee(
    .storage,
    "Names of spaces, schemas, keys and tags that are equal in Swift are equal on the server."
  )

  public static let unheardEnginesAreNoFallback = Guarantee(
    .storage,
    "An entry of the engine is no fallback after the engine was not heard for too long."
  )

  public static let lookupsFromBeforeAClearAreNotShared = Guarantee(
    .storage,
    """
    No request shares a look or fetch from before the time at which a clear no longer waited for \
    its process.
    """
  )

  public static let returnedValuesOutdateOlderEntries = Guarantee(
    .storage,
    """
    A process does not go back to an entry that was stored before the fetch of a value that it has \
    returned.
    """
  )

  public static let faultsReturnNothingOlderThanAClear = Guarantee(
    .storage,
    """
    Processes under load return nothing older than a clear while connections, processes and \
    servers fail.
    """
  )

  public static let clearsEndDespiteEvictions = Guarantee(
    .storage,
    "A clear everywhere ends although the server evicts at once what it stores."
  )

  public static let operatorTableIsMeasured = Guarantee(
    .storage,
    "The table of failures for operators is measured."
  )

  public static let outagesCostOneQueryPerRequest = Guarantee(
    .storage,
    """
    Without a time to keep, an outage of the server costs the origin a query for each request at \
    most.
    """
  )

  public static let conformanceRefusesHastyRemovals = Guarantee(
    .storage,
    """
    The conformance suite refuses an engine whose removals do not wait for nodes that hear \
    nothing.
    """
  )

  public static let slowValuesKeepNoOthersWaiting = Guarantee(
    .storage,
    """
    A value that the engine takes too slowly does not keep others from being read, and large \
    values that wait are bounded.
    """
  )

  public static let earlyRenewalsKeepFreshValues = Guarantee(
    .storage,
    """
    A fresh value that is renewed early stays if the shared engine has evicted its entry and the \
    renewal fails; an expired one is not used after a failure.
    """
  )

  public static let schemasCostTwoCaches = Guarantee(
    .storage,
    """
    With a Redis server, two schemas live side by side at the cost of two caches: each key is \
    fetched once for each of them, and a fetch of one delays none of the other.
    """
  )

  public static let clearsReachAllSchemas = Guarantee(
    .storage,
    """
    With a Redis server, a clear, an outdating and a stored value of one schema reach the entries, \
    leases and copies of all schemas.
    """
  )

  public static let schemasShareNoEntry = Guarantee(
    .storage,
    "With a Redis server, schemas and keys can be any text, and share no entry."
  )

  public static let foreignLayoutsAreUntouched = Guarantee(
    .storage,
    "With a Redis server, data of another layout are neither read nor changed."
  )

  public static let fullServersCarryOutClears = Guarantee(
    .storage,
    """
    A Redis server with full memory carries out clears, refreshes, heartbeats and departures, and \
    refuses events with the reason.
    """
  )

  public static let clockStepsKeepClearsComplete = Guarantee(
    .storage,
    """
    A step of the clock of a Redis server makes no clear incomplete and repeats no fetch in \
    progress. A fetch whose process dies at that time is taken over within twice its lease.
    """
  )

  public static let entriesStayAsLongAsUsable = Guarantee(
    .storage,
    """
    Entries stay on a Redis server as long as their cache can use them, and for the retention of \
    their space at most.
    """
  )

  public static let onlyMastersAreUsed = Guarantee(
    .storage,
    """
    A connection is used only with a master, and the reason why a server is not used is in the \
    health.
    """
  )

  public static let demotedServersServeNothingCleared = Guarantee(
    .storage,
    "A server that was demoted serves no value that was cleared at the new master."
  )

  public static let failoversRecoverInASecond = Guarantee(
    .storage,
    "After a failover, kept connections work again within a second of the new master's answer."
  )

  public static let sentinelsAreFollowed = Guarantee(
    .storage,
    "An engine with sentinels follows their failover and their announcements."
  )

  public static let sentinelsAreNotTrusted = Guarantee(
    .storage,
    """
    Sentinels are not trusted: a reply that is no address, and a name that they do not know, are \
    errors.
    """
  )

  public static let clustersHaveOneConnectionPerMaster = Guarantee(
    .storage,
    """
    An engine of a cluster has one connection of a kind to each master that it uses, and one by \
    which it finds them.
    """
  )

  public static let movedSlotsAreFollowed = Guarantee(
    .storage,
    """
    A slot that another master gets, by a failover or by moving it, is followed, and serves \
    nothing older than a clear.
    """
  )

  public static let movedSlotsLoseNoEvent = Guarantee(
    .storage,
    """
    No event is lost while the slot of its topic moves, or its master is replaced by a replica \
    that has the event.
    """
  )

  public static let ephemeralConnectionsReportMovedSlots = Guarantee(
    .storage,
    "An ephemeral connection reports what it has missed while the slot of its topic moves."
  )

  public static let deadLettersAreMadeInOneStep = Guarantee(
    .storage,
    "A message becomes a dead letter in one step, also in a cluster."
  )

  public static let redirectedCommandsAreSentOnce = Guarantee(
    .storage,
    """
    A command that a cluster sends elsewhere is sent there, one that it cannot execute is tried \
    again for its time, and no other is sent twice.
    """
  )

  public static let clusterServersAreNotTrusted = Guarantee(
    .storage,
    "The servers of a cluster are not trusted: redirections, maps and their sizes are checked."
  )

  public static let clusterFailuresAreInTheHealth = Guarantee(
    .storage,
    """
    A cluster that does not execute the commands of a space, has no master of its slot, or whose \
    master refuses the connection, is in the health with the reason.
    """
  )

  public static let clusterErrorsSayWhatToDo = Guarantee(
    .storage,
    """
    An address, a mode, a database or a right that a cluster cannot have, or lacks, is an error \
    that says what to do.
    """
  )

  public static let idleProcessesSendOneCommand = Guarantee(
    .storage,
    """
    An idle process with a Redis server sends one small command for each heartbeat, whatever the \
    number of its caches; in a cluster, one for each slot in use.
    """
  )

  public static let lostRegistrationsAreRenewed = Guarantee(
    .storage,
    """
    A process whose registration a Redis server has lost is registered again by the next clear at \
    the latest, and copies are used no longer than clears wait for them.
    """
  )

  public static let refusedCommandsDegradeTheHealth = Guarantee(
    .storage,
    """
    A server that refuses a kind of command degrades the health, which names the command and the \
    right.
    """
  )

  public static let unhelpfulSettingsFailAtOnce = Guarantee(
    .storage,
    "Connecting fails at once if only other settings help."
  )

  public static let closingIsNoInterruption = Guarantee(
    .storage,
    "Closing an engine is no interruption."
  )

  public static let credentialsAreReplacedInTime = Guarantee(
    .storage,
    "Credentials are requested for each connection, and replaced before they expire."
  )

  public static let descriptionsShowNoPassword = Guarantee(
    .storage,
    "No description shows a password."
  )

  public static let waitersAnswerWithStaleValues = Guarantee(
    .storage,
    """
    A process that waits for the failing fetch of another one answers with its stale value, as the \
    other one does.
    """
  )

  public static let policyJudgesOtherProcesses = Guarantee(
    .storage,
    "The policy judges the failure of another process."
  )

  public static let clearedValuesAreNoFallback = Guarantee(
    .storage,
    "A value that is cleared during a wait is no fallback."
  )

  public static let clearsElsewhereEndFallbacks = Guarantee(
    .storage,
    "A fallback that is cleared elsewhere is none any longer."
  )

  public static let endedLeasesAreLookedUpAgain = Guarantee(
    .storage,
    """
    A request that waits for another process looks again when its own process ends the lease by a \
    refresh or a removal.
    """
  )

  public static let softTimeoutAnswersWaitingProcesses = Guarantee(
    .storage,
    "The soft timeout answers a process that waits for another one."
  )

  public static let staleValuesAnswerDuringRenewalsElsewhere = Guarantee(
    .storage,
    """
    A stale value that may be served while it is renewed answers at once while another process \
    renews it: the lease of a key is no change of its value.
    """
  )

  public static let staleValuesAnswerDuringFailuresElsewhere = Guarantee(
    .storage,
    """
    A stale value that may be served while it is renewed answers requests that arrive while a \
    failure in another process is noticed.
    """
  )

  public static let severalKeysAreOneFetchWithoutTheEngine = Guarantee(
    .storage,
    "Without the engine, several keys are one fetch."
  )

  public static let waitingKeysAreOneFetchWithoutTheEngine = Guarantee(
    .storage,
    "Keys that wait for another process are one fetch when the engine is gone."
  )

  public static let batchesKeepTheirWindowWithoutTheEngine = Guarantee(
    .storage,
    "A batch keeps its window and its largest size without the engine."
  )

  public static let copiesAreKeptForTheTimeToKeep = Guarantee(
    .storage,
    """
    Copies are kept for the time to keep since the engine was heard, values that are fetched \
    meanwhile since the start of their fetch.
    """
  )

  public static let keptValuesNeedALookAfterReconnecting = Guarantee(
    .storage,
    "No kept value is used after a reconnection without a look."
  )

  public static let clearsWaitForKeptCopies = Guarantee(
    .storage,
    """
    A clear everywhere waits until a process without the server keeps no copy, also after lost \
    registrations.
    """
  )

  public static let keptCopiesHideOutages = Guarantee(
    .storage,
    "With a time to keep, an outage of the server is none of the origin."
  )

  public static let copiesNeedTheServerByDefault = Guarantee(
    .storage,
    "By default, no copy is used without the server, not even as a fallback."
  )

  public static let requestsOfManyKeysFetchInOneProcess = Guarantee(
    .storage,
    "A request of many keys is fetched by one process only."
  )

  public static let failedRemovalsAreRepeated = Guarantee(
    .storage,
    "A removal that failed is repeated, although no key of it is used."
  )

  public static let closingPaysWhatIsOwed = Guarantee(
    .storage,
    "An engine pays what it owes before it closes, or throws."
  )

  public static let rejectedValuesAreReportedOnce = Guarantee(
    .storage,
    "A value that the outbox does not take is fetched by each process, kept, and reported once."
  )

  public static let slowValuesAreNotSentAgain = Guarantee(
    .storage,
    "A value that is too slow delays no other one, and is not sent again."
  )

  public static let nodesHoldInEveryOrder = Guarantee(
    .storage,
    """
    In every order of jobs, nodes fetch once, and no request after a clear, a refresh or a store \
    is answered with something older.
    """
  )

  public static let lostLeasesAreNotGrantedAgain = Guarantee(
    .storage,
    "The engine in memory never grants a lost lease or epoch again."
  )

  public static let cachersAreCheckedByOneSuite = Guarantee(
    .storage,
    "Cachers are checked by one suite."
  )

  public static let enginesAreCheckedByOneSuite = Guarantee(
    .storage,
    "Engines are checked by one suite."
  )

  public static let tlsIsNeverUnencrypted = Guarantee(
    .storage,
    """
    `RedisAddress.tls` connects by TLS 1.2 or later, to a server with a valid certificate of its \
    host, and never without encryption. Without the trait it fails and names the trait.
    """
  )

  public static let encryptionAttemptsEndInTime = Guarantee(
    .storage,
    "An attempt to encrypt ends with its time limit, and with its connection."
  )

  public static let lateAnswersExtendNoTrust = Guarantee(
    .storage,
    "The trust in copies is not extended by an answer from before its end."
  )
}
