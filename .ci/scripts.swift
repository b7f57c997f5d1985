// Writes the scripts of PlexusRedis to a folder, as a server gets them. Usage: write FOLDER
//
// The gate `lua` appends the declarations of the files in Lua, and the names of the scripts. It compiles them with the
// sources that declare the scripts, without the module that runs them.

import Foundation

final class RedisScript: Sendable {
  let source: String

  init(_ purpose: String, _ source: String) { self.source = source }
}

func bytes(_ path: String) -> [UInt8] {
  guard let data = FileManager.default.contents(atPath: path) else {
    print("There is no \(path)")
    exit(1)
  }
  return [UInt8](data)
}

func write(_ script: RedisScript, _ name: String) throws {
  let file = URL(filePath: CommandLine.arguments[1]).appending(path: "\(name).lua")
  try script.source.write(to: file, atomically: true, encoding: .utf8)
}
