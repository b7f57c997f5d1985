// The buffers are those of strings, and are read within the bounds and the calls of their closures.

extension String {
  /// Returns whether the text contains another one, regardless of the case of letters of ASCII.
  func containsIgnoringCase(_ other: String) -> Bool {
    var (text, part) = (self, other)
    return text.withUTF8 { text in
      part.withUTF8 { part in
        guard let first = unsafe part.first, part.count <= text.count else { return part.isEmpty }
        for start in 0...(text.count - part.count)
        where unsafe text[start].lowercased == first.lowercased {
          var index = 1
          while index < part.count,
            unsafe text[start + index].lowercased == part[index].lowercased
          {
            index += 1
          }
          if index == part.count { return true }
        }
        return false
      }
    }
  }
}

extension UInt8 {
  fileprivate var lowercased: UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self
  }
}
