/// The changes of a space, each carried out by the engine as a whole.
enum TierScripts {
  /// The functions that the scripts share.
  private static let common = """
    local function count(epoch) return epoch and tonumber(string.match(epoch, '^%d+')) or 0 end
    -- The epoch. An engine that has lost it, or has an older one than the node knows, gets a new one that is higher.
    local function current(key, known, nonce)
      local epoch = redis.call('GET', key)
      local here, there = count(epoch), count(known)
      if not epoch or here < there or (here == there and epoch ~= known and there > 0) then
        epoch = string.format('%.0f-%s', math.max(here, there) + 1, nonce)
        redis.call('SET', key, epoch)
      end
      return epoch
    end
    local function now()
      local time = redis.call('TIME')
      return time[1] * 1000 + math.floor(time[2] / 1000)
    end

    """

  /// KEYS: epoch, tokens, then entry, lease and failure of each key.
  ///
  /// ARGV: node, ms of a lease, nonce, known epoch, schema, then for each key the epoch and token of the version that
  /// is not new enough, whether a lease is wanted, and the token of the lease that the node waits for.
  static let look = RedisScript(
    common + """
      local epoch = current(KEYS[1], ARGV[4], ARGV[3])
      local time = now()
      local findings = {epoch}
      for index = 0, (#KEYS - 2) / 3 - 1 do
        local entryKey, leaseKey, failureKey = KEYS[3 + 3 * index], KEYS[4 + 3 * index], KEYS[5 + 3 * index]
        local oldEpoch, oldToken = ARGV[6 + 4 * index], tonumber(ARGV[7 + 4 * index])
        local takesLease, awaited = ARGV[8 + 4 * index] == '1', tonumber(ARGV[9 + 4 * index])
        local e = redis.call('HMGET', entryKey, 'e', 'v', 't', 's', 'd', 'o')
        local previous = false
        local isNew = false
        if e[1] == epoch and e[5] and e[4] == ARGV[5] then
          previous = {e[2], math.max(0, time - tonumber(e[3])), e[5]}
          isNew = (not e[6] or tonumber(e[6]) < tonumber(e[2]))
            and (oldEpoch ~= epoch or tonumber(e[2]) > oldToken)
        end
        if isNew then
          findings[#findings + 1] = {'entry', previous}
        else
          local lease = redis.call('GET', leaseKey)
          local token = lease and string.match(lease, ':(%d+)$')
          if lease and string.match(lease, '^[^ ]+') ~= epoch then lease = false end
          local failure = awaited > 0 and redis.call('HMGET', failureKey, 'v', 'd')
          if failure and failure[1] and tonumber(failure[1]) >= awaited then
            findings[#findings + 1] = {'failed', failure[2]}
          elseif lease then
            findings[#findings + 1] = {'busy', token, redis.call('PTTL', leaseKey), previous}
          elseif takesLease then
            token = redis.call('INCR', KEYS[2])
            redis.call('SET', leaseKey, string.format('%s %s:%.0f', epoch, ARGV[1], token), 'PX', ARGV[2])
            findings[#findings + 1] = {'granted', token, previous}
          else
            findings[#findings + 1] = {'nothing', previous}
          end
        end
      end
      return findings
      """
  )

  /// KEYS: epoch, entry, lease, failure.
  ///
  /// ARGV: epoch and token of the lease, node, schema, payload, ms of retention.
  static let fill = RedisScript(
    common + """
      local own = string.format('%s %s:%s', ARGV[1], ARGV[3], ARGV[2])
      local holds = redis.call('GET', KEYS[3]) == own
      if holds then redis.call('DEL', KEYS[3]) end
      if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'cleared' end
      local e = redis.call('HMGET', KEYS[2], 'e', 'v', 'o')
      local token = tonumber(ARGV[2])
      if not holds or (e[1] == ARGV[1] and e[2] and tonumber(e[2]) >= token)
        or (e[3] and tonumber(e[3]) >= token) then
        return 'superseded'
      end
      redis.call('DEL', KEYS[2], KEYS[4])
      redis.call('HSET', KEYS[2], 'e', ARGV[1], 'v', ARGV[2], 't', now(), 's', ARGV[4], 'd', ARGV[5])
      redis.call('PEXPIRE', KEYS[2], ARGV[6])
      -- The change has ended the tracking for this node, too. It begins again with the next reading.
      redis.call('HGET', KEYS[2], 'v')
      return 'stored'
      """
  )

  /// KEYS: epoch, tokens, then the entry and lease of each key.
  ///
  /// ARGV: nonce, known epoch, schema, ms of retention, the number of the epoch that is required or nothing, then the
  /// payload of each key.
  ///
  /// A lease that is held ends: what its holder fetches is older than what is stored.
  static let store = RedisScript(
    common + """
      local epoch = current(KEYS[1], ARGV[2], ARGV[1])
      if ARGV[5] ~= '' and count(epoch) ~= tonumber(ARGV[5]) then return {epoch} end
      local time = now()
      local tokens = {epoch}
      for index = 0, (#KEYS - 2) / 2 - 1 do
        local entryKey, leaseKey = KEYS[3 + 2 * index], KEYS[4 + 2 * index]
        local token = redis.call('INCR', KEYS[2])
        redis.call('DEL', entryKey, leaseKey)
        redis.call('HSET', entryKey, 'e', epoch, 'v', token, 't', time, 's', ARGV[3], 'd', ARGV[6 + index])
        redis.call('PEXPIRE', entryKey, ARGV[4])
        -- As in a fill: this node has a copy, and has to hear of changes.
        redis.call('HGET', entryKey, 'v')
        tokens[#tokens + 1] = token
      end
      return tokens
      """
  )

  /// KEYS: lease and failure of each key.
  ///
  /// ARGV: node, payload of the failure or nothing, ms of its retention, then
  /// epoch and token of each lease.
  static let release = RedisScript(
    """
    local released = 0
    for index = 0, #KEYS / 2 - 1 do
      local leaseKey, failureKey = KEYS[1 + 2 * index], KEYS[2 + 2 * index]
      local epoch, token = ARGV[4 + 2 * index], ARGV[5 + 2 * index]
      if redis.call('GET', leaseKey) == string.format('%s %s:%s', epoch, ARGV[1], token) then
        if ARGV[2] ~= '' then
          redis.call('HSET', failureKey, 'v', token, 'd', ARGV[2])
          redis.call('PEXPIRE', failureKey, ARGV[3])
        end
        redis.call('DEL', leaseKey)
        released = released + 1
      end
    end
    return released
    """
  )

  /// KEYS: lease of each key.
  ///
  /// ARGV: node, ms of a lease, then epoch and token of each lease.
  static let renew = RedisScript(
    """
    local lost = {}
    for index = 1, #KEYS do
      local epoch, token = ARGV[1 + 2 * index], ARGV[2 + 2 * index]
      if redis.call('GET', KEYS[index]) == string.format('%s %s:%s', epoch, ARGV[1], token) then
        redis.call('PEXPIRE', KEYS[index], ARGV[2])
      else
        lost[#lost + 1] = index
      end
    end
    return lost
    """
  )

  /// KEYS: tokens, then entry and lease of each key.
  ///
  /// ARGV: ms of retention.
  ///
  /// Entries stay as fallbacks. A lease that is held ends, since its fetch may have begun before the change.
  static let outdate = RedisScript(
    """
    local token = redis.call('INCR', KEYS[1])
    for index = 0, (#KEYS - 1) / 2 - 1 do
      local entryKey, leaseKey = KEYS[2 + 2 * index], KEYS[3 + 2 * index]
      redis.call('HSET', entryKey, 'o', token)
      if redis.call('PTTL', entryKey) < 0 then redis.call('PEXPIRE', entryKey, ARGV[1]) end
      redis.call('DEL', leaseKey)
    end
    return token
    """
  )

  /// KEYS: epoch, tokens, then entry, lease and failure of each key.
  ///
  /// ARGV: nonce, known epoch, ms of retention.
  ///
  /// A tombstone tells nodes that have a copy that the entry was removed, and not evicted by the engine.
  static let remove = RedisScript(
    common + """
      local epoch = current(KEYS[1], ARGV[2], ARGV[1])
      local token = redis.call('INCR', KEYS[2])
      for index = 0, (#KEYS - 2) / 3 - 1 do
        local entryKey = KEYS[3 + 3 * index]
        redis.call('DEL', entryKey, KEYS[4 + 3 * index], KEYS[5 + 3 * index])
        redis.call('HSET', entryKey, 'e', epoch, 'v', token)
        redis.call('PEXPIRE', entryKey, ARGV[3])
      end
      return epoch
      """
  )

  /// KEYS: epoch.
  ///
  /// ARGV: nonce, known epoch.
  static let removeAll = RedisScript(
    common + """
      local epoch = current(KEYS[1], ARGV[2], ARGV[1])
      epoch = string.format('%.0f-%s', count(epoch) + 1, ARGV[1])
      redis.call('SET', KEYS[1], epoch)
      return epoch
      """
  )

  /// KEYS: epoch, nodes, acknowledgements.
  ///
  /// ARGV: node, ms of trust, known epoch, nonce.
  ///
  /// Nodes that have not been heard of for a minute are forgotten.
  static let beat = RedisScript(
    common + """
      local epoch = current(KEYS[1], ARGV[3], ARGV[4])
      local time = now()
      local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', time - 60000)
      for _, node in ipairs(gone) do
        redis.call('ZREM', KEYS[2], node)
        redis.call('HDEL', KEYS[3], node)
      end
      redis.call('ZADD', KEYS[2], time + ARGV[2], ARGV[1])
      redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
      return epoch
      """
  )

  /// KEYS: nodes, acknowledgements.
  ///
  /// ARGV: epoch.
  ///
  /// Returns how long the nodes that have not acknowledged the epoch can still trust their copies, in ms.
  static let laggards = RedisScript(
    common + """
      local time = now()
      local longest = 0
      local nodes = redis.call('ZRANGEBYSCORE', KEYS[1], time, '+inf', 'WITHSCORES')
      for index = 1, #nodes, 2 do
        if redis.call('HGET', KEYS[2], nodes[index]) ~= ARGV[1] then
          longest = math.max(longest, tonumber(nodes[index + 1]) - time + 1)
        end
      end
      return longest
      """
  )

  /// KEYS: nodes, acknowledgements.
  ///
  /// ARGV: node.
  static let leave = RedisScript(
    """
    redis.call('ZREM', KEYS[1], ARGV[1])
    redis.call('HDEL', KEYS[2], ARGV[1])
    return 1
    """
  )
}
