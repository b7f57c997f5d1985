import Plexus

/// Changes the filter of a page by the keyboard.
///
/// Typed text is shown immediately. It takes effect after a pause, so that the board does not change with every letter.
/// Escape takes effect immediately.
@MainActor
final class FilterInput {
  /// The length of a pause in typing.
  static let pause = Duration.milliseconds(250)

  private let page: BoardPage
  /// The filter after all keys.
  ///
  /// While another thread keeps the page busy, the page has yet to follow.
  private var filter: FilterState
  private let query: DebouncerVar<String>
  private let keyboard: Keyboard?
  private var decoder = KeyDecoder()

  /// Creates the input of a page.
  ///
  /// - Parameters:
  ///   - keyboard: The keyboard, which is kept alive.
  ///   - page: The page with the filter.
  ///   - clock: The clock that measures pauses.
  init(_ keyboard: Keyboard?, _ page: BoardPage, clock: any Clock<Duration> = ContinuousClock()) {
    self.keyboard = keyboard
    self.page = page
    filter = page.state
    query = DebouncerVar(filter.text, delay: Self.pause, clock: clock) { text in
      page.dispatch(.apply(text))
    }
    keyboard?.typed.observe(as: self) { input, bytes in input.take(bytes) }
  }

  /// Processes input of the keyboard.
  func take(_ bytes: [UInt8]) {
    for key in decoder.keys(in: bytes) { press(key) }
  }

  private func press(_ key: Key) {
    let action: FilterAction =
      switch key {
      case .text(let text): .type(text)
      case .backspace: .erase
      case .escape: .clear
      }
    filter.apply(action)
    page.dispatch(action)
    query.value = filter.typed
  }
}
