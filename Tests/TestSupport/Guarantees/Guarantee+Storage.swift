extension Guarantee {
  public static let flushWritesOnlyChanges = Guarantee(
    .storage,
    """
    A flush writes only changes to the cacher. Its error names the keys that failed, which are \
    retried.
    """
  )

  public static let evictedValuesAreWrittenFirst = Guarantee(
    .storage,
    "A value that is evicted from memory is written first."
  )

  public static let cachersAreReadAfterFailures = Guarantee(
    .storage,
    "The cacher is read after a connectivity failure, or before the fetch if the policy says so."
  )

  public static let failingCachersFailNoRequest = Guarantee(
    .storage,
    "A cacher whose every call fails makes no request fail; its errors are counted and reported."
  )

  public static let hangingCachersAreMisses = Guarantee(
    .storage,
    """
    A cacher that does not return within `storageTimeout` is a miss, and is not read for 30 \
    seconds.
    """
  )

  public static let flushAndClearThrowForHangingCachers = Guarantee(
    .storage,
    """
    `flush()` and `clear()` throw if the cacher does not return. Copies that could not be removed \
    are not used, and are removed later.
    """
  )

  public static let severalCopiesShareOneTimeout = Guarantee(
    .storage,
    """
    Stored copies of several keys share one storage timeout, and a slow one does not delay the \
    other keys of the fetch.
    """
  )

  public static let slowCachersKeepMemoryBounded = Guarantee(
    .storage,
    """
    With a capacity, memory stays bounded with a slow cacher, too. Values that are given up are \
    reported by `flush()`.
    """
  )

  public static let crashesLeaveNoPartialEntry = Guarantee(
    .storage,
    """
    After a crash, on a full disk or with a failure at any call, each entry is completely old or \
    completely new.
    """
  )

  public static let damagedEntriesAreMisses = Guarantee(
    .storage,
    """
    An entry with any byte changed, truncated at any length, of another schema or foreign is a \
    miss, never a wrong value.
    """
  )

  public static let foreignObjectsAffectNoOtherFile = Guarantee(
    .storage,
    "A foreign object in place of one file affects no other file, and no removal."
  )

  public static let fileNamesAreSafeAndUnique = Guarantee(
    .storage,
    """
    Every key has its own file name of at most 120 safe bytes inside the directory, and the stored \
    key is compared.
    """
  )

  public static let equalKeysShareOneEntry = Guarantee(
    .storage,
    """
    Equal keys share one entry, however they are spelled, and different keys have different \
    entries.
    """
  )

  public static let unwrittenChangesBelongToTheKey = Guarantee(
    .storage,
    """
    A change that was not written yet, and one that has left memory, belong to a key however it is \
    spelled.
    """
  )

  public static let idIsTheNamespace = Guarantee(
    .storage,
    "The id of a map is the namespace of its stored entries."
  )

  public static let filesBelongToTheirOwner = Guarantee(
    .storage,
    "Only their owner can enter folders and read files."
  )

  public static let processesShareADirectory = Guarantee(
    .storage,
    """
    Two instances, or two processes, on one directory lose and mix up nothing; an id can be used \
    again.
    """
  )

  public static let clearedKeysAreNotWrittenBack = Guarantee(
    .storage,
    """
    Keys, maps and stores that one instance or process has cleared are not written back by another \
    one that fetched the values before.
    """
  )

  public static let mapsClearedTogetherStillWrite = Guarantee(
    .storage,
    "Maps that share a folder and are cleared together write what they fetch meanwhile."
  )

  public static let readsDoNotWaitForWriters = Guarantee(
    .storage,
    "Reading a log does not wait for a process that writes, or was stopped while it wrote."
  )

  public static let fullDisksAllowRemovals = Guarantee(
    .storage,
    "Entries can be removed, and the log compacted, on a full disk."
  )

  public static let compactedLogsAreLockedFirst = Guarantee(
    .storage,
    "A compacted log is locked before other instances can find it."
  )

  public static let removalsAreDurable = Guarantee(
    .storage,
    "Removals are durable when they return."
  )

  public static let batchesStoreAsMuchAsPossible = Guarantee(
    .storage,
    "A batch stores as much as possible and names the rest."
  )

  public static let byteLimitIsMetFirst = Guarantee(
    .storage,
    """
    A byte limit is met before the new entry is visible; without a directory, the user's caches \
    directory is used.
    """
  )

  public static let logCompactsItself = Guarantee(
    .storage,
    "The log compacts itself, and no content of the file makes opening fail."
  )

  public static let statesAreSavedOncePerDelay = Guarantee(
    .storage,
    """
    A persisted state is written once per delay, from the first unsaved change on, and only if it \
    has changed. Writes never overlap.
    """
  )

  public static let statesAreSavedAtTheEnd = Guarantee(
    .storage,
    """
    A persisted state is written a last time when its source ends or the saved state is released, \
    which does not keep the source alive.
    """
  )

  public static let failedSavesAreTriedAgain = Guarantee(
    .storage,
    """
    A failed write of a persisted state is reported, and tried again with growing pauses; after \
    the release eight times.
    """
  )

  public static let flushedStatesAreTheNewest = Guarantee(
    .storage,
    """
    A flush of a persisted state writes every change that was made before it, and completes even \
    if its task is cancelled.
    """
  )

  public static let clearedStatesStayCleared = Guarantee(
    .storage,
    """
    A clear of a persisted state drops what is unsaved. Neither a running write nor one that \
    outlives the saved state brings it back.
    """
  )

  public static let savedHistoriesEndRight = Guarantee(
    .storage,
    """
    After any history, a persisted state is stored with the last change since the last clear, or \
    not at all.
    """
  )

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
