extension Guarantee {
  public static let manualClocksStandStill = Guarantee(
    .testing,
    """
    A manual clock stands still until it is advanced. When `advance` returns, all due sleepers \
    have been resumed, in order of deadline.
    """
  )

  public static let sleepersWaitsForSleepers = Guarantee(
    .testing,
    "`sleepers(n)` returns once at least `n` tasks sleep."
  )

  public static let recordersCollectInOrder = Guarantee(
    .testing,
    """
    A recorder collects the elements of a sequence in order; `first(n)` waits for `n` elements and \
    `finished()` for the end; nothing is recorded after `cancel()`.
    """
  )

  public static let gatesSuspendTasks = Guarantee(
    .testing,
    "A gate suspends tasks until it is opened; a cancelled task throws."
  )

  public static let scriptsRepeatTheirLastResult = Guarantee(
    .testing,
    """
    A scripted fetcher returns the results of its script in order, then repeats the last one, and \
    counts fetches when they begin.
    """
  )

  public static let scenariosRunInEveryOrder = Guarantee(
    .testing,
    "Scenarios run in every order with up to six deviations by default, each order once."
  )
}
