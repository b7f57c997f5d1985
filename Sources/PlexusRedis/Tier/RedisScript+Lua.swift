// The texts of scripts are files of the folder `Lua`, which the compiler puts into the library: it reads no files. The
// gate `lua` of .ci/check compiles each script, and finds names that are not declared.

extension RedisScript {
  /// Creates a script that begins with functions that others have as well.
  ///
  /// - Parameters:
  ///   - purpose: The kind of the script, in the plural.
  ///   - functions: Lines that declare what is local to the script.
  ///   - file: What it does.
  convenience init(_ purpose: String, _ functions: String, _ file: [UInt8]) {
    self.init(purpose, functions + Self.text(file).dropLast())
  }

  /// Returns the text of a file, which ends with a newline.
  static func text(_ file: [UInt8]) -> String { String(decoding: file, as: UTF8.self) }
}
