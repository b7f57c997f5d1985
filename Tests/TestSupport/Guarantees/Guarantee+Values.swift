extension Guarantee {
  public static let currentValuesAreReadableAtOnce = Guarantee(
    .values,
    """
    A value can be read as soon as it was set. A new subscriber receives it first, and a slow one \
    skips to the newest.
    """
  )

  public static let valueUpdatesAreAtomic = Guarantee(
    .values,
    """
    An update is atomic. Its body runs without a lock, and again if another update came between. \
    If it throws, nothing changes.
    """
  )

  public static let finishedValuesAreFinal = Guarantee(
    .values,
    "After `finish()`, setting has no effect, and a later stream yields the last value and ends."
  )

  public static let duplicatesAreRemovedPerSubscriber = Guarantee(
    .values,
    "A value that removes duplicates compares with the last value that each subscriber received."
  )

  public static let derivedBroadcastersSubscribeOnce = Guarantee(
    .values,
    """
    A derived broadcaster is subscribed to its source only while it has subscribers, once for all \
    of them. It ends with its source, which its subscribers do not keep alive.
    """
  )

  public static let derivedBroadcastersReplay = Guarantee(
    .values,
    """
    A derived broadcaster replays like its source. A buffering policy counts the elements that \
    pass a filter.
    """
  )

  public static let removeDuplicatesComparesPerSubscriber = Guarantee(
    .values,
    "`removeDuplicates()` compares with the last element that each subscriber received."
  )

  public static let derivedBroadcastersKeepOrder = Guarantee(
    .values,
    """
    Derived broadcasters preserve the order of handlers, and deliver no state from before a \
    sign-out.
    """
  )

  public static let selectedPartsAreEvaluatedOnce = Guarantee(
    .values,
    """
    A selected part is published when it changes, and evaluated once per action for all \
    subscribers. Reading it while it has subscribers evaluates nothing.
    """
  )

  public static let keyPathsAreSharedByAllViews = Guarantee(
    .values,
    """
    Stores and page stores evaluate equal key paths once per action, for any number of temporaries \
    and observed values.
    """
  )

  public static let partsAreNeverBehind = Guarantee(
    .values,
    """
    A part of a store is never behind the state, also in a handler of the state, during an action \
    and on another thread.
    """
  )

  public static let selectedPartsCanBeTemporaries = Guarantee(
    .values,
    "A selected part can be a temporary; its memory is released with the last subscriber."
  )

  public static let observedValuesAreCurrent = Guarantee(
    .values,
    """
    An observed value is the current value of its source, as soon as a call on the main actor that \
    changes it has returned.
    """
  )

  public static let observersAreNotifiedInTime = Guarantee(
    .values,
    """
    Observers are notified before a call on the main actor that changes the value returns, and on \
    the main actor of changes elsewhere.
    """
  )

  public static let equalPartsInvalidateNothing = Guarantee(
    .values,
    "Equal values and other parts of a state invalidate nothing."
  )

  public static let observedValuesKeepTheirState = Guarantee(
    .values,
    """
    An observed value keeps its state alive, and ends with its owner. A messenger is not kept \
    alive.
    """
  )

  public static let valuesHoldInEveryOrder = Guarantee(
    .values,
    """
    In every order of jobs, updates, reads and subscriptions see one history of a value, and a \
    selected part is correct.
    """
  )

  public static let viewsMissNothingAfterCurrent = Guarantee(
    .values,
    """
    A new subscriber of a view never begins with an element older than the `current` read before \
    it subscribed, and misses nothing after it.
    """
  )

  public static let observersSeeNestedChanges = Guarantee(
    .values,
    """
    `ObservedValue` notifies of each change, also of one that an observer makes inside a \
    notification.
    """
  )

  public static let viewsOfViewsAreNeverBehind = Guarantee(
    .values,
    "A view of a broadcaster that forwards a view is never behind it."
  )

  public static let partsAreCombinedConsistently = Guarantee(
    .values,
    """
    Parts of one state are never combined from two different elements of it, in any depth of \
    `select`, `map` and `combine`, and for a store with its pages.
    """
  )

  public static let combinationsPublishEveryChange = Guarantee(
    .values,
    """
    A combination publishes one element for each change of a source, in order, and skips none.
    """
  )

  public static let combinationsSubscribeOnce = Guarantee(
    .values,
    """
    A combination is subscribed to its sources only while it has subscribers, and ends when all \
    sources have ended.
    """
  )

  public static let combinationsAreReset = Guarantee(
    .values,
    "A combination delivers no element from before a reset of one of its sources."
  )
}
