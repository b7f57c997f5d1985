/// The error of a test's own code that finds a promise broken, where an expectation cannot say in which order it was.
public struct Wrong: Error, Hashable {
  /// A description of the finding.
  public var what: String

  /// Creates an error.
  public init(what: String = "") {
    self.what = what
  }

  /// Throws an error if a promise is broken.
  public static func unless(_ isKept: Bool, _ what: @autoclosure () -> String) throws {
    if !isKept { throw Wrong(what: what()) }
  }
}
