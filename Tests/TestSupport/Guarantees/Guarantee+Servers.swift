extension Guarantee {
  public static let cacheUsersNeedDocumentedRights = Guarantee(
    .servers,
    """
    With a Redis server, the user of a cache needs exactly the commands and keys of the article \
    for operators.
    """
  )

  public static let wrongRepliesEndTheConnection = Guarantee(
    .servers,
    """
    With a Redis server, a reply that answers no command, or a wrong reply to the introduction, \
    ends the connection. A server that answers nothing but the introduction is asked less and less \
    often.
    """
  )

  public static let shiftedRepliesMixUpNoKeys = Guarantee(
    .servers,
    """
    With a Redis server whose replies are shifted, a lookup of several keys returns no value of \
    another key.
    """
  )

  public static let impossibleNumbersAreNotUsed = Guarantee(
    .servers,
    """
    A number that no Redis server gives is not used, and not sent to another server. A heartbeat \
    whose answer differs each time is repeated with pauses.
    """
  )

  public static let faultyServersCauseNoOlderAnswers = Guarantee(
    .servers,
    """
    With a Redis server whose clients are killed or paused, or that has no memory, another role, \
    or lost keys, no request fails, goes back to something older, or is answered with what was \
    cleared everywhere.
    """
  )

  public static let connectionTimesAdvanceDuringSleep = Guarantee(
    .servers,
    "The times of a Redis connection advance while the machine sleeps."
  )

  public static let nameLookupsAreBounded = Guarantee(
    .servers,
    """
    The lookup of a Redis server's name ends with the time limit of the connection, keeps no \
    command waiting, and is not begun twice.
    """
  )

  public static let lateAddressesServeTheNextAttempt = Guarantee(
    .servers,
    """
    Addresses of a Redis server's name that came too late for an attempt to connect serve the next \
    one, and no later one.
    """
  )

  public static let largeValuesNeedListedRights = Guarantee(
    .servers,
    "Large values need only the rights that the article lists."
  )

  public static let statusCoversAllConnections = Guarantee(
    .servers,
    "The status and the health are those of all connections."
  )

  public static let sentinelsNeverGetThePassword = Guarantee(
    .servers,
    "A sentinel is never given the password of the server."
  )

  public static let renewedCredentialsLeaveNoTrace = Guarantee(
    .servers,
    """
    A renewal of credentials leaves no trace in the health once it has succeeded or its connection \
    has ended.
    """
  )

  public static let hangingCredentialsBlockNoConnection = Guarantee(
    .servers,
    "A call for credentials that does not end does not keep the engine from connecting."
  )

  public static let errorsShowNoPassword = Guarantee(
    .servers,
    "No error shows a part of a password."
  )

  public static let refusalsEndWithASuccess = Guarantee(
    .servers,
    "A refusal ends once a command of its kind has succeeded, however rare the kind is."
  )

  public static let hopelessConnectionsFailAtOnce = Guarantee(
    .servers,
    "Connecting fails at once only if other settings help."
  )

  public static let operatorTableIsMeasured = Guarantee(
    .servers,
    "The table of failures for operators is measured."
  )

  public static let foreignLayoutsAreUntouched = Guarantee(
    .servers,
    "With a Redis server, data of another layout are neither read nor changed."
  )

  public static let fullServersCarryOutClears = Guarantee(
    .servers,
    """
    A Redis server with full memory carries out clears, refreshes, heartbeats and departures, and \
    refuses events with the reason.
    """
  )

  public static let clockStepsKeepClearsComplete = Guarantee(
    .servers,
    """
    A step of the clock of a Redis server makes no clear incomplete and repeats no fetch in \
    progress. A fetch whose process dies at that time is taken over within twice its lease.
    """
  )

  public static let onlyMastersAreUsed = Guarantee(
    .servers,
    """
    A connection is used only with a master, and the reason why a server is not used is in the \
    health.
    """
  )

  public static let demotedServersServeNothingCleared = Guarantee(
    .servers,
    "A server that was demoted serves no value that was cleared at the new master."
  )

  public static let failoversRecoverInASecond = Guarantee(
    .servers,
    "After a failover, kept connections work again within a second of the new master's answer."
  )

  public static let sentinelsAreFollowed = Guarantee(
    .servers,
    "An engine with sentinels follows their failover and their announcements."
  )

  public static let sentinelsAreNotTrusted = Guarantee(
    .servers,
    """
    Sentinels are not trusted: a reply that is no address, and a name that they do not know, are \
    errors.
    """
  )

  public static let clustersHaveOneConnectionPerMaster = Guarantee(
    .servers,
    """
    An engine of a cluster has one connection of a kind to each master that it uses, and one by \
    which it finds them.
    """
  )

  public static let movedSlotsAreFollowed = Guarantee(
    .servers,
    """
    A slot that another master gets, by a failover or by moving it, is followed, and serves \
    nothing older than a clear.
    """
  )

  public static let movedSlotsLoseNoEvent = Guarantee(
    .servers,
    """
    No event is lost while the slot of its topic moves, or its master is replaced by a replica \
    that has the event.
    """
  )

  public static let ephemeralConnectionsReportMovedSlots = Guarantee(
    .servers,
    "An ephemeral connection reports what it has missed while the slot of its topic moves."
  )

  public static let deadLettersAreMadeInOneStep = Guarantee(
    .servers,
    "A message becomes a dead letter in one step, also in a cluster."
  )

  public static let redirectedCommandsAreSentOnce = Guarantee(
    .servers,
    """
    A command that a cluster sends elsewhere is sent there, one that it cannot execute is tried \
    again for its time, and no other is sent twice.
    """
  )

  public static let clusterServersAreNotTrusted = Guarantee(
    .servers,
    "The servers of a cluster are not trusted: redirections, maps and their sizes are checked."
  )

  public static let clusterFailuresAreInTheHealth = Guarantee(
    .servers,
    """
    A cluster that does not execute the commands of a space, has no master of its slot, or whose \
    master refuses the connection, is in the health with the reason.
    """
  )

  public static let clusterErrorsSayWhatToDo = Guarantee(
    .servers,
    """
    An address, a mode, a database or a right that a cluster cannot have, or lacks, is an error \
    that says what to do.
    """
  )

  public static let idleProcessesSendOneCommand = Guarantee(
    .servers,
    """
    An idle process with a Redis server sends one small command for each heartbeat, whatever the \
    number of its caches; in a cluster, one for each slot in use.
    """
  )

  public static let lostRegistrationsAreRenewed = Guarantee(
    .servers,
    """
    A process whose registration a Redis server has lost is registered again by the next clear at \
    the latest, and copies are used no longer than clears wait for them.
    """
  )

  public static let refusedCommandsDegradeTheHealth = Guarantee(
    .servers,
    """
    A server that refuses a kind of command degrades the health, which names the command and the \
    right.
    """
  )

  public static let unhelpfulSettingsFailAtOnce = Guarantee(
    .servers,
    "Connecting fails at once if only other settings help."
  )

  public static let closingIsNoInterruption = Guarantee(
    .servers,
    "Closing an engine is no interruption."
  )

  public static let credentialsAreReplacedInTime = Guarantee(
    .servers,
    "Credentials are requested for each connection, and replaced before they expire."
  )

  public static let descriptionsShowNoPassword = Guarantee(
    .servers,
    "No description shows a password."
  )

  public static let tlsIsNeverUnencrypted = Guarantee(
    .servers,
    """
    `RedisAddress.tls` connects by TLS 1.2 or later, to a server with a valid certificate of its \
    host, and never without encryption. Without the trait it fails and names the trait.
    """
  )

  public static let encryptionAttemptsEndInTime = Guarantee(
    .servers,
    "An attempt to encrypt ends with its time limit, and with its connection."
  )

  public static let eventUsersNeedDocumentedRights = Guarantee(
    .servers,
    """
    With a Redis server, the user of events needs exactly the commands, keys and channels of the \
    article for operators.
    """
  )

  public static let engineStatusHasStateAndLoad = Guarantee(
    .servers,
    """
    The status of a `RedisEngine` has the state and the load of its connections, and the events \
    that are not confirmed or not acknowledged.
    """
  )

  public static let outgoingBytesAreBounded = Guarantee(
    .servers,
    """
    With a Redis server, the bytes that wait to be sent are bounded; an event beyond them is \
    refused. A topic keeps a bounded number of events, and refuses more than twice as many that a \
    group needs.
    """
  )

  public static let fullOutboxesReportErrors = Guarantee(
    .servers,
    """
    A handler that publishes while the outbox is full receives an error, and its connection \
    continues.
    """
  )
}
