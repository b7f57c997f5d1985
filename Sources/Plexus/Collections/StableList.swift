/// Members in the order in which they joined, any of whom may leave.
///
/// Leaving takes a search by halves, however many there are, and the gaps are closed when they
/// outnumber the members. Nothing but the member that leaves is ever released.
@usableFromInline
struct StableList<Member> {
  @usableFromInline
  struct Place {
    @usableFromInline let number: Int
    /// `nil` once it has left.
    @usableFromInline var member: Member?

    @inlinable
    init(number: Int, member: Member) {
      self.number = number
      self.member = member
    }
  }

  /// In ascending order of the numbers, with gaps.
  @usableFromInline var places: ContiguousArray<Place> = []
  @usableFromInline var gaps = 0
  @usableFromInline var lastNumber = 0

  @inlinable
  init() {}

  @inlinable var isEmpty: Bool { gaps == places.count }

  /// Adds a member behind the others.
  ///
  /// - Returns: The number with which it leaves.
  @inlinable
  mutating func append(_ member: Member) -> Int {
    lastNumber += 1
    places.append(Place(number: lastNumber, member: member))
    return lastNumber
  }

  /// Lets a member go.
  ///
  /// - Parameter number: What ``append(_:)`` has returned.
  /// - Returns: The member, unless it has gone before.
  mutating func remove(_ number: Int) -> Member? {
    var low = 0
    var high = places.count
    while low < high {
      let middle = (low + high) / 2
      if places[middle].number < number { low = middle + 1 } else { high = middle }
    }
    guard low < places.count, places[low].number == number,
      let member = places[low].member
    else { return nil }
    places[low].member = nil
    gaps += 1
    if gaps > 16, gaps > places.count / 2 {
      places.removeAll { $0.member == nil }
      gaps = 0
    }
    return member
  }
}

extension StableList: Sendable where Member: Sendable {}

extension StableList.Place: Sendable where Member: Sendable {}
