extension Guarantee {
  public static let messagesAreNotReplayed = Guarantee(
    .messengers,
    "A message is not replayed to later subscribers."
  )

  public static let ignoredAuthorsDoNotCount = Guarantee(
    .messengers,
    """
    A subscriber that ignores an author does not receive its messages, which do not count for its \
    buffering policy.
    """
  )

  public static let authorsHaveTheirOwnIdentity = Guarantee(
    .messengers,
    "Every author has its own identity."
  )

  public static let finishedMessengersEndTheirStreams = Guarantee(
    .messengers,
    """
    ``Messenger/finish()`` ends every stream after the messages sent before. Later messages are \
    ignored, and later streams end immediately.
    """
  )

  public static let subscriberCountIncludesAllKinds = Guarantee(
    .messengers,
    "The subscriber count includes streams, subscriptions and handlers."
  )

  public static let messengersCanBeRequiredByProtocols = Guarantee(
    .messengers,
    """
    A messenger can be required by a protocol, stored as any broadcaster of its messages, and \
    added to the one of a superclass.
    """
  )
}
