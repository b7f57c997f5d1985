extension Array where Element: Requestable {
  /// Starts all requests at once and waits for all of them.
  ///
  /// ```swift
  /// let names = MultiplexerMap<Int, String> { id in "user \(id)" }
  /// let results = await [1, 2, 3].map { names[$0] }.results()
  /// print(results.count)  // Prints "3"
  /// ```
  ///
  /// - Returns: Their results, in the order of the array. If the calling task is cancelled, requests that have to wait
  ///   fail with a `CancellationError`.
  public func results() async -> [Result<Element.Value, any Error>] {
    let immediate = map { $0.requestImmediately() }
    return await withTaskGroup(of: (Int, Result<Element.Value, any Error>).self) { group in
      for (index, request) in enumerated() where immediate[index] == nil {
        group.addTask {
          do {
            return (index, .success(try await request.request()))
          } catch {
            return (index, .failure(error))
          }
        }
      }
      var results = immediate.map { value -> Result<Element.Value, any Error> in
        value.map { .success($0) } ?? .failure(CancellationError())
      }
      for await (index, result) in group { results[index] = result }
      return results
    }
  }

  /// Starts all requests at once and waits until all have succeeded or one has failed.
  ///
  /// - Returns: Their values, in the order of the array.
  /// - Throws: The first error. The other requests are then cancelled.
  public func values() async throws -> [Element.Value] {
    var values = map { $0.requestImmediately() }
    return try await withThrowingTaskGroup(of: (Int, Element.Value).self) { group in
      for (index, request) in enumerated() where values[index] == nil {
        group.addTask { (index, try await request.request()) }
      }
      for try await (index, value) in group { values[index] = value }
      return values.compactMap { $0 }
    }
  }
}
