internal import Plexus

// MARK: - Leases

extension Tier {
  /// Releases leases without a value.
  ///
  /// - Parameters:
  ///   - leases: The leases; lost ones are ignored.
  ///   - failure: The failure for callers that wait for these fetches; without it one of them fetches.
  /// - Throws: An error of the connection.
  func release(_ leases: [SharedCache.Lease], because failure: [UInt8]?) async throws {
    let parts = await run(TierScripts.release, inPartsOf: leases) { leases in
      RedisScript.Call(
        keys: leases.flatMap { [names.lease($0.key), names.fetch($0.key)] },
        arguments: [.text(holder), .data(failure ?? []), milliseconds(times.failure)]
          + arguments(of: leases)
      )
    }
    for (_, reply) in parts { _ = try reply.get() }
  }

  /// Renews leases that no other node has taken over, however late.
  ///
  /// - Returns: The leases that are lost.
  func renew(_ leases: [SharedCache.Lease]) async throws -> [SharedCache.Lease] {
    let parts = await run(TierScripts.renew, inPartsOf: leases) { leases in
      RedisScript.Call(
        keys: leases.flatMap { [names.lease($0.key), names.fetch($0.key)] },
        arguments: [.text(holder), milliseconds(times.lease)] + arguments(of: leases)
      )
    }
    return try parts.flatMap { leases, reply in
      guard let lost = try reply.get().elements else { throw TierError.unexpectedReply }
      return lost.compactMap { element -> SharedCache.Lease? in
        guard let index = element.integer, (1...Int64(leases.count)).contains(index) else {
          return nil
        }
        return leases[leases.startIndex + Int(index) - 1]
      }
    }
  }

  /// Returns the leases of some keys that this node has.
  ///
  /// - Throws: An error of the connection.
  func ownLeases(of keys: some Collection<String>) async throws -> [SharedCache.Lease] {
    let replies = await route.send(keys.map { RedisCommand("GET", [.text(names.lease($0))]) })
    return try zip(keys, replies).compactMap { key, reply in
      // A key of another type is an error that the scripts repair.
      guard let text = try reply.present()?.text else { return nil }
      let parts = text.split(separator: " ", maxSplits: 1)
      guard parts.count == 2, let epoch = TierEpoch(parts[0]), parts[1].hasPrefix("\(holder):"),
        let token = UInt64(parts[1].dropFirst(holder.count + 1))
      else { return nil }
      return SharedCache.Lease(key: key, version: SharedCache.Version(epoch, token: token))
    }
  }

  private func arguments(of leases: ArraySlice<SharedCache.Lease>) -> [RedisCommand.Argument] {
    leases.flatMap { lease in
      [.text(lease.version.tierEpoch.description), number(lease.version.token)]
        as [RedisCommand.Argument]
    }
  }
}
