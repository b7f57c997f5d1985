extension ContiguousArray {
  /// The index of the first element of which something is true that is true of all that follow it, found
  /// by halving.
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
