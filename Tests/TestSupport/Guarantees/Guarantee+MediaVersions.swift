extension Guarantee {
  public static let verdictsConcernTheirVersion = Guarantee(
    .media,
    """
    A verdict about a file (undecodable, wrong digest, 404, 410) concerns the version that it is \
    about: a file that has taken its place stays.
    """
  )

  public static let removalsForgetDecodingFailures = Guarantee(
    .media,
    """
    A failure to decode is not remembered if the file was removed or everything cleared meanwhile, \
    and is forgotten when a repository clears everything.
    """
  )

  public static let notModifiedConfirmsOnlyItsVersion = Guarantee(
    .media,
    """
    A 304 that names another version or comes from another address confirms nothing; a part is \
    continued only by an answer with the announced length.
    """
  )

  public static let foreignChangesAreNoticed = Guarantee(
    .media,
    "Files that others remove or add are noticed before files are evicted."
  )

  public static let clearedMediaCannotBeRead = Guarantee(
    .media,
    """
    After clearing, nothing of a user can be read, also of downloads in progress; nothing is \
    evicted for a file that is not kept.
    """
  )

  public static let progressEndsWithTheRequest = Guarantee(
    .media,
    """
    Progress ends when the file or the image is there, or the request fails, with and without a \
    download.
    """
  )

  public static let mediaHoldsInRandomHistories = Guarantee(
    .media,
    "All of this holds in 2,080 random histories of two loaders of one folder."
  )

  public static let removedFilesAreUnreadable = Guarantee(
    .media,
    """
    A removed file leaves nothing to read, and no download or request that began before brings it \
    back, of whatever loader.
    """
  )

  public static let olderDownloadsReplaceNothing = Guarantee(
    .media,
    "An older download does not replace a newer file of another loader."
  )

  public static let vanishedMediaFoldersAreMadeAgain = Guarantee(
    .media,
    "A folder that vanishes while a file is written is made again."
  )

  public static let partsBelongToTheirPlace = Guarantee(
    .media,
    "A part is continued only by the place that it came from."
  )

  public static let clientErrorsEndCachedValues = Guarantee(
    .media,
    "A value whose server answers 4xx does not come back from the cache."
  )

  public static let clearedFetchesEndNoLaterOne = Guarantee(
    .media,
    "A fetch from before everything was cleared does not end a later one."
  )

  public static let ageCountsFromTheConfirmation = Guarantee(
    .media,
    "A value is as old as the 304 that has confirmed it, also without a date."
  )

  public static let repositoriesClearHTTPCaches = Guarantee(
    .media,
    "A repository clears an HTTP cache until it is unregistered."
  )
}
