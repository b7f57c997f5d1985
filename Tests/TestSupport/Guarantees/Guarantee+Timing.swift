extension Guarantee {
  public static let debouncersFireOnce = Guarantee(
    .timing,
    """
    A debouncer fires once after the last touch, however long touches continue; with a maximum \
    delay, also while they continue.
    """
  )

  public static let leadingFiresTheFirstTouch = Guarantee(
    .timing,
    """
    With `leading`, the first touch fires immediately, and another firing requires another touch.
    """
  )

  public static let equalValuesDoNotPostpone = Guarantee(
    .timing,
    "An equal value has no effect and does not postpone; the initial value counts as fired."
  )

  public static let restoredValuesCancelTheFiring = Guarantee(
    .timing,
    """
    Restoring the last fired value cancels the firing; so does `cancel()`, which keeps the value.
    """
  )

  public static let throttlersFireOncePerInterval = Guarantee(
    .timing,
    "A throttler fires at most once per interval, by default at both edges."
  )

  public static let timedSequencesFireAlike = Guarantee(
    .timing,
    "Debounced and throttled sequences fire at the same edges."
  )

  public static let actionsNeverOverlap = Guarantee(
    .timing,
    "An action never overlaps itself; touches while it runs cause one more run."
  )

  public static let cancelStopsFiring = Guarantee(
    .timing,
    "After `cancel()`, nothing is fired and no action starts."
  )

  public static let flushWaitsForTheRun = Guarantee(
    .timing,
    """
    `flush()` fires a pending touch and waits for the end of the run; a cancelled caller returns \
    immediately.
    """
  )

  public static let releaseCancelsTheFiring = Guarantee(
    .timing,
    """
    Releasing a debouncer or throttler cancels the pending firing, ends the streams and releases \
    the action.
    """
  )

  public static let elementsPrecedeTheAction = Guarantee(
    .timing,
    "An element is in every buffer when the action starts."
  )

  public static let cancelledValuesAreNotFired = Guarantee(
    .timing,
    "What `cancel()` of a debounced variable drops counts as not fired."
  )

  public static let stoppedClocksAreNoticed = Guarantee(
    .timing,
    """
    A clock that stands still stops a debug build with a sentence, and costs a release build no \
    CPU time.
    """
  )
}
