extension Guarantee {
  public static let filesAreDownloadedOnce = Guarantee(
    .media,
    """
    A file is downloaded once for all callers, found again later, and readable by its owner only.
    """
  )

  public static let errorStatusesLeaveNothing = Guarantee(
    .media,
    """
    An error status is thrown and leaves nothing behind; an interrupted transfer leaves at most a \
    part that can be continued, also by another loader.
    """
  )

  public static let errorStatusesHaveTheirBody = Guarantee(
    .media,
    """
    An error status has the beginning of its body, also if the rest breaks off, drips or is too \
    large.
    """
  )

  public static let lengthAndDigestAreVerified = Guarantee(
    .media,
    "Length and digest are verified."
  )

  public static let lastCallerStopsTheDownload = Guarantee(
    .media,
    "The last caller to leave stops the download and keeps its part."
  )

  public static let clearsDuringDownloadsStoreNothing = Guarantee(
    .media,
    "Clearing during a download never leaves a URL without a file, and stores nothing."
  )

  public static let subscribersReceiveProgress = Guarantee(
    .media,
    "All subscribers receive the progress, which ends with the download."
  )

  public static let downloadsAreLimited = Guarantee(
    .media,
    """
    The byte limit is met when a new file is visible; the number of concurrent downloads per host \
    is limited.
    """
  )

  public static let partsCountTowardsTheLimit = Guarantee(
    .media,
    """
    Parts count towards the limit, also while they are written, and are evicted as files are. \
    Parts that no download has continued for a day are removed while the loader is in use.
    """
  )

  public static let leastRecentlyUsedFilesGoFirst = Guarantee(
    .media,
    "After a restart, the least recently used files go first."
  )

  public static let downloadedFilesAreHeld = Guarantee(
    .media,
    "A file that was downloaded is held until its callers have it, however small the limit."
  )

  public static let recordsBelongToTheirVersion = Guarantee(
    .media,
    """
    The record of a file is that of its version: an older download, a renewal or a digest never \
    replaces a newer one. A folder or link in its place is replaced.
    """
  )

  public static let overlongFilesAreRejected = Guarantee(
    .media,
    "A file above the maximum length is rejected, announced or not, and leaves nothing behind."
  )

  public static let mediaDefaultsAreDocumented = Guarantee(
    .media,
    """
    The defaults are six downloads per host, a gigabyte in all, 512 MB per file, three attempts, \
    and 256 MB of images.
    """
  )

  public static let gigabyteIsKeptByDefault = Guarantee(
    .media,
    "Files of more than a gigabyte together are evicted by default."
  )

  public static let equalRequestsShareAFile = Guarantee(
    .media,
    """
    Requests with equal cache keys share a download and a file; without a key, the URL is the key. \
    Keys that are canonically equivalent are one.
    """
  )

  public static let headerFieldsAreNotInTheKey = Guarantee(
    .media,
    "Header fields are sent, are not part of the key, and are not written to disk."
  )

  public static let rejectionsAreNotShared = Guarantee(
    .media,
    """
    A caller does not receive the rejection of a request with other header fields or another URL.
    """
  )

  public static let priorityDeterminesThePlace = Guarantee(
    .media,
    "The priority of a request determines its place in the queue."
  )

  public static let requestsCountInEveryCall = Guarantee(
    .media,
    "Cache key and header fields count in every call that takes a request, and in prefetching."
  )

  public static let removedFilesAreNotRestored = Guarantee(
    .media,
    "Removing a file removes its record and its parts, and no earlier download restores it."
  )

  public static let reloadingReplacesTheFile = Guarantee(
    .media,
    """
    Reloading replaces the file, which stays until the new one is complete, and if that fails. An \
    older download never replaces a newer file.
    """
  )

  public static let staleFilesAreRevalidated = Guarantee(
    .media,
    """
    With revalidation, a stale file is confirmed by 304 or replaced, is used if the server fails \
    unless that is forbidden, and is removed after 404 and 410. Without it, a file is never \
    requested again.
    """
  )

  public static let digestsAreComputedOnce = Guarantee(
    .media,
    "A digest is computed once per file, also by several loaders."
  )

  public static let digestsReadTheBytesOnce = Guarantee(
    .media,
    "The bytes of a file are read once for its digest, also if its record was lost."
  )

  public static let retryAfterIsRespected = Guarantee(
    .media,
    "A Retry-After of at most a minute is respected; a response without a body is not a file."
  )

  public static let fullDisksMakeTemporaryFiles = Guarantee(
    .media,
    """
    On a full or read-only disk, a file is temporary, and an image is shown without using the \
    disk.
    """
  )

  public static let fillingDisksMakeTemporaryFiles = Guarantee(
    .media,
    "The same on a disk that is full after some bytes, or that becomes read-only."
  )

  public static let smallImagesDecodeFromMemory = Guarantee(
    .media,
    "An image is decoded from memory up to 64 MB."
  )

  public static let incompleteFilesAreNotUsed = Guarantee(
    .media,
    "After a power failure, an incomplete file is not used."
  )

  public static let wrongKindsOfFilesAreReplaced = Guarantee(
    .media,
    "A folder instead of a file, or a file instead of a folder, is replaced."
  )

  public static let prefetchersStopAndPause = Guarantee(
    .media,
    """
    A prefetcher stops when it is released or the loader is cleared, and can be paused and \
    resumed.
    """
  )

  public static let fourFilesArePrefetched = Guarantee(
    .media,
    """
    Four files are prefetched at a time from all hosts together, unless the prefetcher has another \
    number.
    """
  )

  public static let localFilesAreUsedInPlace = Guarantee(.media, "Local files are used in place.")

  public static let imagesDecodeOnce = Guarantee(
    .media,
    """
    An image is decoded once for all callers, off their actors. If it cannot be decoded, the \
    request fails and the file is removed.
    """
  )

  public static let undecodableFilesAreRemembered = Guarantee(
    .media,
    """
    A file that cannot be decoded is not downloaded again for five minutes, unless it is reloaded; \
    the number of remembered failures is limited.
    """
  )

  public static let damagedFilesAreDownloadedAgain = Guarantee(
    .media,
    "A file that was damaged on disk is downloaded once more."
  )

  public static let decodingsAreLimited = Guarantee(
    .media,
    "The number of concurrent decodings is limited, and a decoder can wait for other images."
  )

  public static let decodingsMatchTheCores = Guarantee(
    .media,
    """
    As many images are decoded at once as there are cores by default, and the most urgent one is \
    next.
    """
  )

  public static let decodersReceiveTheType = Guarantee(
    .media,
    "A decoder receives the type of a file, also in a later process."
  )

  public static let unreachableServersAreConnectivityFailures = Guarantee(
    .media,
    """
    `URLError` is a connectivity failure if the server could not be reached, not if it could not \
    be trusted.
    """
  )

  public static let transfersShareOneTimer = Guarantee(
    .media,
    "The transfers of a client share one timer, which ends with the last of them."
  )

  public static let variantsShareADownload = Guarantee(
    .media,
    """
    All variants of an image share one download, each is decoded once and kept by itself, and \
    removing the image removes all of them.
    """
  )

  public static let invalidVariantsFail = Guarantee(
    .media,
    "A variant without a possible size fails with a sentence, before anything is downloaded."
  )
}
