/// An ordered list of members that can be removed by number.
///
/// Removal is a binary search that leaves a gap; gaps are compacted when they outnumber the members. No
/// operation releases a member other than the removed one, which is returned.
@usableFromInline
struct StableList<Member> {
  @usableFromInline
  struct Place {
    @usableFromInline let number: Int
    /// The member, or `nil` after its removal.
    @usableFromInline var member: Member?

    @inlinable
    init(number: Int, member: Member) {
      self.number = number
      self.member = member
    }
  }

  /// The places in ascending order of their numbers, with gaps.
  @usableFromInline var places: ContiguousArray<Place> = []
  @usableFromInline var gaps = 0
  @usableFromInline var lastNumber = 0

  @inlinable
  init() {}

  @inlinable var isEmpty: Bool { gaps == places.count }

  /// Appends a member.
  ///
  /// - Returns: The number with which it can be removed.
  @inlinable
  mutating func append(_ member: Member) -> Int {
    lastNumber += 1
    places.append(Place(number: lastNumber, member: member))
    return lastNumber
  }

  /// Removes a member.
  ///
  /// - Parameter number: The number that ``append(_:)`` returned.
  /// - Returns: The member, or `nil` if it has been removed before.
  @inlinable
  mutating func remove(_ number: Int) -> Member? {
    let index = places.firstSortedIndex { $0.number >= number }
    guard index < places.count, places[index].number == number,
      let member = places[index].member
    else { return nil }
    places[index].member = nil
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
