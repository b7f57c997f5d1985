import Plexus

/// A list of numbered pages, of which the first one to be loaded has the number 0.
struct PagesOrigin {
  /// The cursors that a page gives.
  enum Style: CaseIterable {
    case forward
    case backward
    case both
  }

  let style: Style
  /// The number of fetched pages, which is part of their items.
  var edition = 0
  var isShort = false

  private var first: Int { style == .forward ? 0 : -3 }
  private var last: Int { style == .backward ? 0 : isShort ? 1 : 3 }

  mutating func page(at cursor: Int?) -> Page<String, Int> {
    let number = cursor ?? 0
    edition += 1
    return Page(
      items: ["\(number):\(edition)"],
      previous: style != .forward && number > first ? number - 1 : nil,
      next: style != .backward && number < last ? number + 1 : nil
    )
  }
}
