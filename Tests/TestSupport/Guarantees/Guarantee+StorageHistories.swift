extension Guarantee {
  public static let clearsByTagOutdateOtherInstances = Guarantee(
    .storage,
    """
    A value whose fetch began before a clear by tag or a refresh by another instance is not read \
    as new, in one process or two.
    """
  )

  public static let clearsByTagOutdateOtherCaches = Guarantee(
    .storage,
    """
    A value whose fetch began before a clear by tag or a refresh by another cache of the same \
    process and cacher is no answer, with any cacher.
    """
  )

  public static let updatesKeepTheAge = Guarantee(
    .storage,
    "An update keeps the age of the value that it changes."
  )

  public static let fetchesOfSeveralKeysHaveTheirOwnStarts = Guarantee(
    .storage,
    """
    The parts of a fetch of several keys have their own starts, and every fetch of a key ends, \
    also if a clear has detached one of the same batch.
    """
  )

  public static let ageCountsFromTheAttempt = Guarantee(
    .storage,
    "The age of a value counts from the start of the attempt that returned it."
  )

  public static let refreshesDoNotPreventWriting = Guarantee(
    .storage,
    "Refreshes do not prevent the writing of values."
  )

  public static let futureCopiesAreRemoved = Guarantee(
    .storage,
    "A stored copy whose time lies in the future is removed when it is read."
  )

  public static let mapsNeverReadTooNewValues = Guarantee(
    .storage,
    """
    In any history of two maps with one cacher, no value is read as newer than the start of its \
    fetch allows.
    """
  )

  public static let releasedMapsWriteTheirChanges = Guarantee(
    .storage,
    "Write-behind writes the last changes of a map that is released, also after failed writes."
  )

  public static let unwrittenEntriesEvictNoFile = Guarantee(
    .storage,
    "No file is evicted for an entry that is not written."
  )

  public static let clearsLeaveNoBytes = Guarantee(
    .storage,
    "After a clear of everything, no file contains bytes of the removed values."
  )

  public static let removedFoldersAreCreatedAgain = Guarantee(
    .storage,
    "A folder that was removed from outside is created again by the next flush."
  )

  public static let writesContinueDuringRemovals = Guarantee(
    .storage,
    "Write-behind writes what is stored while copies are removed."
  )

  public static let otherProcessesOutdateFetches = Guarantee(
    .storage,
    """
    A value whose fetch began before another process refreshed it or cleared it by tag is not read \
    as new.
    """
  )

  public static let vanishedFoldersAreMadeOrFail = Guarantee(
    .storage,
    "A folder that vanishes during a write is made again, or the write fails."
  )
}
