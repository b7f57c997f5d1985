/// The elements of the roots of a combination, as of one moment.
struct JointState: Sendable {
  /// The element of a root.
  struct Slot: Sendable {
    /// The element, boxed with the type that the root has.
    var box: AnyBox
    /// The round in which the root has sent it.
    var round = 0
  }

  /// The elements, in the order of the roots.
  private(set) var slots: ContiguousArray<Slot>
  /// The number of elements that the roots have sent.
  private(set) var round = 0

  init(_ boxes: some Sequence<AnyBox>) {
    slots = ContiguousArray(boxes.map { Slot(box: $0) })
  }

  /// Replaces the element of a root.
  ///
  /// - Returns: The former one, to be released with no lock held.
  mutating func replace(_ root: Int, with box: AnyBox) -> AnyBox {
    round += 1
    let former = slots[root].box
    slots[root] = Slot(box: box, round: round)
    return former
  }

  /// Sets the first element of a root.
  mutating func begin(_ root: Int, with box: AnyBox) {
    slots[root].box = box
  }
}
