extension Guarantee {
  public static let newSubscribersReceiveTheState = Guarantee(
    .data,
    "A new subscriber receives the current state immediately, `.unknown` included."
  )

  public static let equalValuesArePublished = Guarantee(
    .data,
    "Every change is published, also to an equal value."
  )

  public static let newestValueSurvivesLoading = Guarantee(
    .data,
    """
    The newest value survives loading and failing. Only ``DataPublisher/reset()`` drops it, before \
    `.unknown` is published.
    """
  )

  public static let statesCanBeMapped = Guarantee(
    .data,
    "A state has a newest value, an error and a loading flag, and can be mapped."
  )

  public static let loadPublishesBeforeItReturns = Guarantee(
    .data,
    "`load` publishes loading, then loaded or failed, before it returns."
  )

  public static let secondLoadJoins = Guarantee(.data, "A second `load` joins the one in flight.")

  public static let lateLoadsAreReturnedOnly = Guarantee(
    .data,
    """
    A result that arrives after a reset, an update or a failure is not published, but returned to \
    its callers. A load after a reset starts again.
    """
  )

  public static let lastCancelledCallerCancelsTheLoad = Guarantee(
    .data,
    """
    A cancelled caller returns immediately. The last one cancels the operation, and the previous \
    state is published.
    """
  )

  public static let cancelledTasksLoadNothing = Guarantee(
    .data,
    "A call in a cancelled task throws a `CancellationError` and changes nothing."
  )

  public static let loadIfNeededLoadsOnlyIfNeeded = Guarantee(
    .data,
    "`loadIfNeeded` loads if the state is unknown, failed or stale, and only then."
  )

  public static let operationsRunOffTheActor = Guarantee(
    .data,
    "An operation runs off the caller's actor and without the caller's task-local values."
  )

  public static let onlyLoadedValuesBecomeStale = Guarantee(
    .data,
    "Only a loaded value becomes stale, exactly at the given age; without an age, none does."
  )

  public static let managersPublishWhatTheyFetch = Guarantee(
    .data,
    """
    A manager publishes the values that it fetches, `refreshIfNeeded()` fetches only if necessary, \
    and the data is gone when `logOut()` returns.
    """
  )

  public static let pagesLoadInOrder = Guarantee(
    .data,
    """
    Pages are loaded in order up to the last one, after which loading the next page has no effect.
    """
  )

  public static let pageLoadsShareOneFetch = Guarantee(
    .data,
    "Concurrent page loads share one fetch."
  )

  public static let failedPagesKeepEarlierOnes = Guarantee(
    .data,
    "A failed page keeps the earlier pages, and can be loaded again."
  )

  public static let resetDropsAllPages = Guarantee(
    .data,
    "A reset drops all pages before it is published, and a late page is not used."
  )

  public static let pagesLoadAtBothEnds = Guarantee(
    .data,
    "Both ends of a list can load at the same time, each page once."
  )

  public static let limitedListsAreWindows = Guarantee(
    .data,
    """
    With `maximumPageCount`, pages leave at the end at which none was added, and can be loaded again.
    """
  )

  public static let refreshesReplaceAllPages = Guarantee(
    .data,
    """
    A refresh loads all pages again, in order, and replaces the old ones together, once all have \
    arrived. If a page fails, the old ones stay.
    """
  )

  public static let editsStay = Guarantee(
    .data,
    """
    An edit is visible when it returns. It stays when other pages arrive, and is applied again to \
    the pages of a refresh in flight.
    """
  )

  public static let repeatedCursorsEndTheList = Guarantee(
    .data,
    "A list whose cursors return to one of its pages ends there, with an error."
  )

  public static let mapsOfListsKeepThoseInUse = Guarantee(
    .data,
    """
    A map has one list for a key. It evicts only lists that have no subscribers and that nothing \
    else holds, the least recently accessed ones first.
    """
  )

  public static let mapsOfListsSignOut = Guarantee(
    .data,
    "Clearing a map resets all its lists, and pages in flight are not used."
  )

  public static let publishersHoldInEveryOrder = Guarantee(
    .data,
    "Publishers keep these guarantees in every order of events."
  )

  public static let sharedSequencesReplay = Guarantee(
    .data,
    """
    A shared sequence replays the requested number of elements, also after its end. Stopping the \
    iteration clears the replay.
    """
  )

  public static let lingeringContinuesWithoutSubscribers = Guarantee(
    .data,
    """
    A shared sequence with `lingering` continues without subscribers for that time, but not after \
    its release.
    """
  )

  public static let sharedSequencesIterateOnce = Guarantee(
    .data,
    "A sequence is iterated once for all its subscribers, from the first to the last of them."
  )

  public static let sharedFailuresReachLaterSubscribers = Guarantee(
    .data,
    "The failure of a shared sequence reaches all subscribers, also later ones."
  )
}
