extension Guarantee {
  public static let groupsHandleEachEvent = Guarantee(
    .sharedEvents,
    """
    One node of a group handles each event, and acknowledges it once its handlers have succeeded; \
    otherwise another attempt follows, on any node, and after the last one a dead letter.
    """
  )

  public static let attemptsCountForHandledEvents = Guarantee(
    .sharedEvents,
    """
    With a Redis server, an attempt counts for the event that a node handles, or would handle next \
    when it dies, and not for the events that it has only read ahead.
    """
  )

  public static let renewedEventsStayWithTheirNode = Guarantee(
    .sharedEvents,
    """
    With a Redis server, a node of a group keeps the events that it renews; the events of a node \
    that is gone go to the others together.
    """
  )

  public static let removedEventsAreDeliveredOrReported = Guarantee(
    .sharedEvents,
    """
    With a Redis server, an event of a group that was removed after it was read is delivered, or \
    reported as a gap.
    """
  )

  public static let lateRejectionsFail = Guarantee(
    .sharedEvents,
    """
    With a Redis server, a rejection by a node whose event was taken over fails, and makes no dead \
    letter.
    """
  )

  public static let unacknowledgedEventsAreBounded = Guarantee(
    .sharedEvents,
    """
    With a Redis server, a node of a group handles the next event while an acknowledgement is on \
    its way. Of the events that it has handled, one is handled again if its process is killed; at \
    most 32, and one for each group, are handled again if its connection cannot be restored in \
    time.
    """
  )

  public static let eventsOfLeavingNodesAreHandledAtOnce = Guarantee(
    .sharedEvents,
    """
    With a Redis server, the other nodes of a group handle the events of a node that leaves \
    without waiting.
    """
  )

  public static let leavingNodesHandOverWithoutRetryTime = Guarantee(
    .sharedEvents,
    """
    With a Redis server, the events of a node that leaves go to other nodes at once, whatever the \
    time for retries is, also if its engine is closed immediately after its tokens.
    """
  )

  public static let overtakenFailuresCostNoAttempt = Guarantee(
    .sharedEvents,
    """
    With a Redis server, an event whose handler fails after another node has taken it over has no \
    further attempt on its account.
    """
  )

  public static let removedUnreadEventsAreAGap = Guarantee(
    .sharedEvents,
    """
    With a Redis server, events that were removed before a group has read them are reported as a \
    gap.
    """
  )

  public static let removedEventsBetweenAreAGap = Guarantee(
    .sharedEvents,
    """
    With a Redis server, events that were removed from between others before a node has read them \
    are reported as a gap.
    """
  )

  public static let removedReadEventsAreNoGap = Guarantee(
    .sharedEvents,
    "With a Redis server, events that other programs remove after they were read are no gap."
  )

  public static let readAheadEventsMoveOn = Guarantee(
    .sharedEvents,
    """
    With a Redis server, events that a node has read ahead go to other nodes if its handler takes \
    longer than `retryAfter`.
    """
  )

  public static let leavingReadersTakeNoEvents = Guarantee(
    .sharedEvents,
    "With a Redis server, a reader of a group that leaves takes no more events."
  )

  public static let everyNodeFollowsBrokenConnections = Guarantee(
    .sharedEvents,
    """
    With `.everyNode`, events that were published while a connection was broken follow after it; \
    events that the engine no longer has are reported as a gap.
    """
  )

  public static let ephemeralConnectionsReportMissedEvents = Guarantee(
    .sharedEvents,
    "An ephemeral connection reports the events that it has missed."
  )

  public static let linkEventsKeepTheirOrder = Guarantee(
    .sharedEvents,
    """
    Events that a link reads together are handed to the handlers in the order of the link, \
    together with its reports, and none after the connection has ended.
    """
  )

  public static let eventsDoNotReturn = Guarantee(
    .sharedEvents,
    """
    An event that came in is not sent out again, a node does not receive its own events, and an \
    event that arrives twice is posted once.
    """
  )

  public static let waitingEventsArePublishedTogether = Guarantee(
    .sharedEvents,
    """
    With a Redis server, events that wait are published together, each batch in order; one that is \
    refused or cancelled fails alone, and a batch is appended once.
    """
  )

  public static let brokenConnectionsLoseNoEvent = Guarantee(
    .sharedEvents,
    """
    With a Redis server, connections that break at any byte, that stall, or that are lost without \
    a notice lose and repeat no event.
    """
  )

  public static let oldDataIsReportedAsAGap = Guarantee(
    .sharedEvents,
    """
    With a Redis server that is restarted with old data, what is lost or repeated is reported as a \
    gap.
    """
  )

  public static let lostEventsGetNoForeignAnswer = Guarantee(
    .sharedEvents,
    """
    With a Redis server that was restarted with old data, the answer for a lost event is none for \
    the event in its place.
    """
  )

  public static let removedGroupsAreReported = Guarantee(
    .sharedEvents,
    """
    With a Redis server, removed groups, streams and keys, and refused commands are reported, and \
    events follow once the cause is gone.
    """
  )

  public static let renamedStreamsAreReported = Guarantee(
    .sharedEvents,
    """
    With a Redis server, a stream that is renamed, that expires or that is replaced by an older \
    one is reported, and events follow; so do they if its last position is raised.
    """
  )

  public static let foreignGroupChangesLoseNoEvent = Guarantee(
    .sharedEvents,
    """
    With a Redis server, a node of a group handles the events that it has read although another \
    program has removed its consumer, set the group back or acknowledged them.
    """
  )

  public static let eventsNeedNoAnnouncement = Guarantee(
    .sharedEvents,
    """
    With a Redis server, events are stored without the permission to announce them; the status \
    counts them, and ephemeral connections report a gap with their next event.
    """
  )

  public static let equalTextsAreOneTopic = Guarantee(
    .sharedEvents,
    """
    With a Redis server, texts that are equal in Swift are one topic and one group, however their \
    characters are encoded.
    """
  )

  public static let messagesKeepAllCharacters = Guarantee(
    .sharedEvents,
    "With a Redis server, the id, the origin and the type of a message keep all their characters."
  )

  public static let wrongServersAreUsedWithPauses = Guarantee(
    .sharedEvents,
    """
    A server whose replies are wrong is reported, and is used again with pauses; one whose replies \
    cannot be assigned to commands is left.
    """
  )

  public static let closedLinksEndAllCalls = Guarantee(
    .sharedEvents,
    """
    With a Redis server, a link that is closed ends all publishes and reads, also while the server \
    stands still.
    """
  )

  public static let sharedCallsHaveTheHighestPriority = Guarantee(
    .sharedEvents,
    """
    With a Redis server, events and reads that go together run with the priority of the most \
    urgent caller.
    """
  )

  public static let slowLinksKeepABoundedNumber = Guarantee(
    .sharedEvents,
    """
    A messenger keeps up to 1,024 messages for a slow link, and reports the number of the others.
    """
  )

  public static let cancelledPublishersEnd = Guarantee(
    .sharedEvents,
    """
    With a Redis server, a publisher that is cancelled ends, and its event is stored at most once.
    """
  )

  public static let unconfirmedEventsThrow = Guarantee(
    .sharedEvents,
    """
    `publish` throws if the engine did not confirm an event, or if there is no connection for its \
    type and scope.
    """
  )

  public static let undecodableMessagesAreReported = Guarantee(
    .sharedEvents,
    """
    A message of another version or type, or one that cannot be decoded, is reported; a group \
    moves it to its dead letters.
    """
  )

  public static let connectionsKeepNoBusAlive = Guarantee(
    .sharedEvents,
    "A connection keeps neither its bus nor its messenger alive, and ends with it."
  )

  public static let linksHoldInEveryOrder = Guarantee(
    .sharedEvents,
    """
    In every order of jobs, a node that was cut off gets every event once and in order, a group \
    handles every event although a node leaves, and a node whose token was cancelled posts nothing \
    that is published afterwards.
    """
  )

  public static let linksAreCheckedByOneSuite = Guarantee(
    .sharedEvents,
    "Links are checked by one suite."
  )

  public static let absentGroupsGetTheGapFirst = Guarantee(
    .sharedEvents,
    "A group that was absent is given the gap before the first event that is left."
  )

  public static let trimmingTopicsContinue = Guarantee(
    .sharedEvents,
    "A topic that may trim continues while a group is absent, which reports the gap."
  )
}
