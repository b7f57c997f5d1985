extension Guarantee {
  public static let publishersFollowSequences = Guarantee(
    .sequences,
    """
    A publisher that follows a sequence publishes its elements and its failure, and is held \
    weakly; so is a messenger.
    """
  )

  public static let timedSequencesWithholdNothing = Guarantee(
    .sequences,
    """
    Debounced and throttled sequences withhold nothing when their upstream ends, and forward its \
    error.
    """
  )
}
