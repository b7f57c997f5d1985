extension ContiguousArray {
  /// Returns the first index at which a predicate holds, by binary search.
  ///
  /// The predicate must be false for a prefix of the elements and true for all others.
  @inlinable
  func firstSortedIndex(where isBeyond: (Element) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if isBeyond(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
