import Plexus

/// Lets the keyboard change the filter of a page.
///
/// What is typed shows at once; it applies when typing has paused, so that the board does not change with
/// every letter. Escape does not wait.
@MainActor
final class FilterInput {
  /// How long a pause of typing is.
  static let pause = Duration.milliseconds(250)

  private let page: BoardPage
  /// The text in the field, as the page has it.
  private let typed: ObservedValue<String>
  private let query: DebouncerVar<String>
  private let keyboard: Keyboard?
  private var decoder = KeyDecoder()

  /// Creates the input of a page.
  ///
  /// - Parameters:
  ///   - keyboard: What is typed on; it is kept.
  ///   - page: Whose filter changes.
  ///   - clock: What measures pauses.
  init(_ keyboard: Keyboard?, _ page: BoardPage, clock: any Clock<Duration> = ContinuousClock()) {
    self.keyboard = keyboard
    self.page = page
    typed = ObservedValue(page.select { $0.page.typed })
    query = DebouncerVar(page.state.text, delay: Self.pause, clock: clock) { text in
      page.dispatch(.apply(text))
    }
    keyboard?.typed.observe(as: self) { input, bytes in input.take(bytes) }
  }

  /// Takes what the keyboard sends.
  func take(_ bytes: [UInt8]) {
    for key in decoder.keys(in: bytes) { press(key) }
  }

  private func press(_ key: Key) {
    switch key {
    case .text(let text): page.dispatch(.type(text))
    case .backspace: page.dispatch(.erase)
    case .escape: page.dispatch(.clear)
    }
    query.value = typed.value
  }
}
