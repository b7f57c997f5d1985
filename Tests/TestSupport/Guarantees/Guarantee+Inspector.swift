extension Guarantee {
  public static let inspectorIsReachedOnlyFromItsMachine = Guarantee(
    .inspector,
    """
    The page is served on 127.0.0.1 only. Requests with another host, from a page of another origin, or without the token \
    of the address are refused, and nothing of them is echoed.
    """
  )

  public static let inspectorHidesValues = Guarantee(
    .inspector,
    "Values are shown only with `showsValues: true`; otherwise, their types and sizes are."
  )

  public static let inspectorKeepsNothingAlive = Guarantee(
    .inspector,
    "An inspector keeps no source alive. Stopping it releases its closures and frees its port."
  )

  public static let inspectorSamplesForOpenPages = Guarantee(
    .inspector,
    """
    Nothing is sampled unless a page is open and visible, and a page is sent at most four updates a second. A page that does \
    not read is sent the newest state once it does.
    """
  )

  public static let inspectorIsBounded = Guarantee(
    .inspector,
    """
    At most four pages are open, and their logs are bounded. A thousand connections do not keep a page from being served.
    """
  )
}
