extension Guarantee {
  public static let secureCookiesAreNotShadowed = Guarantee(
    .media,
    "Over http no cookie replaces or shadows one that was set over https with `Secure`."
  )

  public static let cacheTestsPass = Guarantee(
    .media,
    """
    A cache of HTTP does what the categories of the public suite cache-tests ask of a private \
    cache.
    """
  )

  public static let reusedResponsesHaveTheirAge = Guarantee(
    .media,
    "A reused response has its present age and the date that it came with."
  )

  public static let redirectsLimitFreshness = Guarantee(
    .media,
    """
    A value is fresh no longer than the redirects that have led to it, and belongs to requests \
    with the fields that they depend on.
    """
  )

  public static let invalidDatesAreStale = Guarantee(
    .media,
    "Invalid dates count as past, and malformed directives make a value stale."
  )

  public static let varyIsRespected = Guarantee(
    .media,
    """
    `Vary` is respected on a hit; a value of an account, or a part, never answers another request.
    """
  )

  public static let unsafeRequestsInvalidate = Guarantee(
    .media,
    """
    An unsafe request invalidates its URL, and the URLs of the same origin in its response; a \
    fetch in flight is not stored.
    """
  )

  public static let httpBookkeepingIsBounded = Guarantee(
    .media,
    """
    The bookkeeping of an HTTP cache is bounded, and dropping parts of it leaves nothing that \
    cannot be invalidated.
    """
  )

  public static let unsafeRedirectsInvalidate = Guarantee(
    .media,
    """
    An unsafe request also invalidates the URL that it was redirected to, however spelled, however \
    many URLs were requested since. A server cannot invalidate another origin.
    """
  )

  public static let revalidationUsesTheCurrentFields = Guarantee(
    .media,
    """
    A stale value is revalidated with the header fields of the current request. Cookies of a jar \
    select responses like those of a request.
    """
  )

  public static let notModifiedUpdatesTheFields = Guarantee(
    .media,
    "A 304 updates the header fields of the stored response."
  )

  public static let notModifiedCountsAsRevalidation = Guarantee(
    .media,
    "A 304 counts as a revalidation, also if it updates the value."
  )

  public static let httpErrorsAreNotStored = Guarantee(
    .media,
    """
    An error status has the URL, the header fields and the beginning of the body, and is not \
    stored.
    """
  )

  public static let credentialsStayWithTheirOrigin = Guarantee(
    .media,
    """
    Credentials and the headers of a transport are not sent to another origin, nor back to the \
    first one afterwards.
    """
  )

  public static let redirectsAreLimited = Guarantee(
    .media,
    """
    A redirect is followed to http and https only, not from https to http, and not more often than \
    the rules allow.
    """
  )

  public static let redirectTargetsReceiveNoCredentials = Guarantee(
    .media,
    "On the wire, the target of a redirect receives none of them, whatever the status."
  )

  public static let cookiesNeedAJar = Guarantee(
    .media,
    "Cookies are stored in a jar only, and sent only to their hosts."
  )

  public static let hostileCookiesAreRejected = Guarantee(
    .media,
    """
    Cookies with control characters are rejected, and the cookies of one host do not evict those \
    of another.
    """
  )

  public static let brokenResponsesAreNotOffline = Guarantee(
    .media,
    """
    An untrusted certificate, broken coding and broken framing never count as being offline; a \
    response without a byte does.
    """
  )

  public static let challengesAreResponses = Guarantee(
    .media,
    "A challenge is a response, and interim responses are skipped."
  )

  public static let transportsRespectTheLimits = Guarantee(
    .media,
    "A request respects the limits of bytes, total time and minimum rate with every transport."
  )

  public static let httpDefaultsAreDocumented = Guarantee(
    .media,
    """
    By default a body has 64 MB, a request five minutes, ten redirects and a kilobyte a minute, no \
    cookies are kept, and no file is read.
    """
  )

  public static let bombsEndWithinTheLimits = Guarantee(
    .media,
    """
    A small body that decompresses to a large one, endless header fields, and a response that \
    drips end within the limits.
    """
  )

  public static let slowRedirectsOccupyNoSlots = Guarantee(
    .media,
    "A slow redirect target does not occupy the slots of the redirecting host."
  )

  public static let hostileMediaOriginsAreContained = Guarantee(
    .media,
    """
    Hostile origins get no further at a media loader: a stalled host, challenges, interim \
    responses, bombs, cookies, redirects to other schemes, untrusted certificates.
    """
  )

  public static let sessionsWaitForReceivers = Guarantee(
    .media,
    "A session waits for a slow receiver."
  )

  public static let serverDeterminesFreshness = Guarantee(
    .media,
    "A value is fresh as long as the server says, and revalidated with its entity tag."
  )

  public static let accountsDoNotMix = Guarantee(
    .media,
    """
    The value of one account never answers for another, whatever happens to the jar between \
    request, attempts, redirects and renewals.
    """
  )

  public static let rejectedTokenIsRefreshedOnce = Guarantee(
    .media,
    """
    A rejected token is refreshed once for all requests that were sent with it, and each of them is \
    sent once more.
    """
  )

  public static let signOutIsReportedOnce = Guarantee(
    .media,
    """
    A token whose fetch fails for good is reported once until there is a token again, and not while \
    the device is offline.
    """
  )

  public static let signedOutTokenIsNotSent = Guarantee(
    .media,
    "A request is sent for one account, and not with a token that was removed while it waited."
  )

  public static let accountsOfTokensDoNotMix = Guarantee(
    .media,
    "An answer to a request with a token never answers a request of another account."
  )

  public static let removedCookiesStayRemoved = Guarantee(
    .media,
    """
    Removed cookies are no longer sent, and no late answer sets cookies in a jar that was emptied \
    or has those of another account.
    """
  )

  public static let credentialsSelectValues = Guarantee(
    .media,
    """
    Credentials of the transport and of the rules select values. An error is not given to a caller \
    of another account.
    """
  )

  public static let mostRecentAnswerCounts = Guarantee(
    .media,
    """
    Of several answers for a request the most recent one counts, by its date and not by its \
    arrival.
    """
  )

  public static let freshErrorsAreRemembered = Guarantee(
    .media,
    """
    An error that its server declares fresh is remembered for that long, for requests with the \
    fields that it names, and forgotten with its URL.
    """
  )

  public static let partsAreNeverStored = Guarantee(
    .media,
    "A part is never stored, and fields that `Vary` names are compared by meaning."
  )

  public static let wrongHTTPCallsSayWhatIsWrong = Guarantee(
    .media,
    "A wrong call says what is wrong."
  )

  public static let httpAgreesWithRFC9111 = Guarantee(
    .media,
    """
    A cache of HTTP answers as RFC 9111, sections 3 and 4, says, in random histories of accounts, \
    variants, failures and changes.
    """
  )
}
