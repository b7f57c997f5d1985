/// A state whose elements a combination makes itself, from those of its roots.
///
/// A combination subscribes to roots only, to each of them once: parts of one root are therefore always made from the
/// same element of it.
protocol JointPart<Element>: StatefulBroadcaster {
  /// Adds the steps that make the elements, unless the draft has them.
  ///
  /// - Parameter draft: The plan of the combination.
  /// - Returns: The number of the step that makes the elements.
  nonisolated func place(in draft: inout JointPlan.Draft) -> Int
}
