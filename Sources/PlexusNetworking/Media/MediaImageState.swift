/// The state of a view that shows one image after another.
///
/// Invariants:
///
/// - The image of a request is replaced by that of the next one, or by its failure, and not before.
/// - A result of any other request than the present one changes nothing.
struct MediaImageState<Request: Equatable & Sendable, Image: Sendable>: Sendable {
  private(set) var request: Request?
  private(set) var image: Image?
  private(set) var error: (any Error)?
  private(set) var isLoading = false

  /// Returns the state of the view if it shows a request now.
  ///
  /// - Parameters:
  ///   - new: The request; `nil` for none.
  ///   - memory: Returns its image if it is in memory. It is called if the view shows another request so far.
  /// - Returns: The state.
  func showing(_ new: Request?, inMemory memory: (Request) -> Image?) -> Self {
    guard new != request else { return self }
    var next = Self()
    guard let new else { return next }
    next.request = new
    if let found = memory(new) {
      next.image = found
    } else {
      next.image = image
      next.isLoading = true
    }
    return next
  }

  /// Whether the image of the present request is missing, and has to be loaded.
  var isMissing: Bool { request != nil && (isLoading || error != nil) }

  /// Begins to load the image of the present request once more.
  mutating func begin() {
    error = nil
    isLoading = true
  }

  /// The image of a request is there.
  mutating func finish(_ request: Request, with image: Image) {
    guard request == self.request else { return }
    (self.image, error, isLoading) = (image, nil, false)
  }

  /// The image of a request could not be loaded.
  mutating func finish(_ request: Request, with error: any Error) {
    guard request == self.request else { return }
    (image, self.error, isLoading) = (nil, error, false)
  }
}
