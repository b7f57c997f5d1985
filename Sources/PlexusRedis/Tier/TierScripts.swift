/// The changes of a space, each carried out by the engine as a whole.
enum TierScripts {
  /// The largest number of an engine that is no damage: up to it, scripts count exactly.
  static let largestNumber: UInt64 = 1 << 53

  /// The functions that the scripts share.
  ///
  /// Scripts that use `current` have the epoch and the tokens as their first two keys.
  private static let common = """
    -- Runs a command on a key. A key to which another program has given another type is removed before.
    local function run(command, key, ...)
      local reply = redis.pcall(command, key, ...)
      if type(reply) ~= 'table' or not reply.err then return reply end
      if string.find(reply.err, 'WRONGTYPE', 1, true) then redis.call('DEL', key) end
      return redis.call(command, key, ...)
    end
    local largest = \(largestNumber)
    -- A number of another form or size is damage.
    local function number(text, limit)
      local number = tonumber(string.match(text or '', '^%d+$'))
      return number and number <= limit and number or false
    end
    -- The number of an epoch, which has 64 bits for the nonce; 0 for damage.
    local function count(epoch)
      local counter, nonce = string.match(epoch or '', '^(%d+)%-([%da-z]+)$')
      if not counter or #nonce > 13 or #nonce == 13 and nonce > '3w5e11264sgsf' then return 0 end
      return number(counter, largest) or 0
    end
    -- The token of the last fence; 0 for none.
    local function lastFence(key) return number(run('GET', key), largest) or 0 end
    -- The last token.
    local latest
    local function nextToken()
      latest = redis.call('INCR', KEYS[2])
      return latest
    end
    -- The epoch, and the last token. An engine that has lost them, or has less than the node knows, gets a new epoch
    -- that is higher.
    local function current(known, token, nonce)
      local values = redis.call('MGET', KEYS[1], KEYS[2])
      local epoch = values[1]
      token = tonumber(token)
      latest = number(values[2], largest)
      local isBehind = not latest or latest < token
      if epoch == known and epoch ~= '' and not isBehind then return epoch end
      local here, there = count(epoch), count(known)
      if isBehind then
        latest = token
        redis.call('SET', KEYS[2], string.format('%.0f', token))
      end
      if isBehind or here == 0 or here < there or (here == there and epoch ~= known) then
        epoch = string.format('%.0f-%s', math.max(here, there) + 1, nonce)
        redis.call('SET', KEYS[1], epoch)
      end
      return epoch
    end
    local function now()
      local time = redis.call('TIME')
      return time[1] * 1000 + math.floor(time[2] / 1000)
    end
    -- The key of a lease lasts longer than the lease: a renewal is noted elsewhere, so that it wakes no waiting node.
    local hold = 3600000
    local function remaining(leaseKey, fetchKey, token, time)
      local rest = redis.call('PTTL', leaseKey) - hold
      local renewal = run('HMGET', fetchKey, 'l', 'u')
      if renewal[1] == token then rest = math.max(rest, (number(renewal[2], 1e15) or 0) - time) end
      return rest
    end
    -- The token of the last removal by a tag, or of the first use of the tag after it; nothing if it is not known.
    local function mark(key, epoch)
      local ofEpoch, token = string.match(run('GET', key) or '', '^([^ ]+) (%d+)$')
      return ofEpoch == epoch and number(token, latest) or nil
    end
    -- The time at which the set of nodes was found to be lost; 0 for never. A member without a name is in a set that is
    -- complete since that time, which the acknowledgements have under the same name.
    local function lastLoss(nodes, acknowledgements, time)
      local loss = run('HGET', acknowledgements, '')
      local isComplete = #run('ZRANGEBYSCORE', nodes, -2, -2) > 0
      if loss and isComplete then return number(loss, 1e15) or time end
      loss = loss and string.format('%.0f', time) or '0'
      redis.call('ZADD', nodes, -2, '')
      redis.call('HSET', acknowledgements, '', loss)
      return tonumber(loss)
    end
    -- Marks a tag that is not known: entries and leases from before are not valid.
    local function use(key, epoch, retention)
      if mark(key, epoch) then return end
      redis.call('SET', key, string.format('%s %.0f', epoch, nextToken()), 'PX', string.format('%.0f', 2 * retention))
      -- The change has ended the tracking for this node, too. It begins again with the next reading.
      redis.call('GET', key)
    end

    """

  /// KEYS: epoch, tokens, then entry, lease and fetch of each key, then the tags.
  ///
  /// ARGV: nonce, known epoch and token, schema, the number of keys, node, ms of a lease, ms of retention, then a wish for
  /// each key: whether a lease is wanted, and if there is more, the epoch and token of the version that is not new
  /// enough, the token of the lease that the node waits for, and the numbers of its tags.
  ///
  /// The findings come after the epoch and the nonce, which tells the replies to two looks apart. An entry is a text, since
  /// it is the most frequent finding: its token, its age in ms and the payload.
  static let look = RedisScript(
    common + """
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      local time = now()
      local findings = {epoch, ARGV[1]}
      local keyCount = tonumber(ARGV[5])
      local firstTag = 2 + 3 * keyCount
      -- Whether something with a token is newer than the last removals by its tags.
      local function isValid(token, tags)
        if tags == '' then return true end
        for number in string.gmatch(tags, '%d+') do
          local removal = mark(KEYS[firstTag + number], epoch)
          if not removal or removal >= tonumber(token) then return false end
        end
        return true
      end
      for index = 0, keyCount - 1 do
        local entryKey, leaseKey, fetchKey = KEYS[3 + 3 * index], KEYS[4 + 3 * index], KEYS[5 + 3 * index]
        local takesLease, oldEpoch, oldToken, awaited, tags = ARGV[9 + index], '', 0, 0, ''
        if #takesLease > 1 then
          takesLease, oldEpoch, oldToken, awaited, tags =
            string.match(takesLease, '^(%d) (%S*) (%d+) (%d+) (.*)$')
          oldToken, awaited = tonumber(oldToken), tonumber(awaited)
        end
        local e = run('HMGET', entryKey, 'e', 'v', 't', 's', 'd', 'o')
        local token, payload, outdated = e[2], e[5], e[6]
        local stored = number(token, latest) and number(e[3], 1e15)
        local isThere = e[1] == epoch and payload and stored and e[4] == ARGV[4] and isValid(token, tags)
        local age = isThere and string.format('%.0f', math.max(0, time - stored))
        if isThere and (not outdated or (number(outdated, 2 ^ 63) or latest) < tonumber(token))
          and (oldEpoch ~= epoch or tonumber(token) > oldToken) then
          findings[#findings + 1] = token .. ' ' .. age .. ' ' .. payload
        else
          local previous = isThere and {token, age, payload}
          local lease = run('GET', leaseKey)
          local token = lease and string.match(lease, ':(%d+)$')
          if not token or string.match(lease, '^[^ ]+') ~= epoch or not isValid(token, tags) then lease = false end
          local rest = lease and remaining(leaseKey, fetchKey, token, time) or 0
          local failure = awaited > 0 and run('HMGET', fetchKey, 'v', 'd')
          if failure and (number(failure[1], latest) or 0) >= awaited then
            findings[#findings + 1] = {'failed', failure[2]}
          elseif rest > 0 then
            findings[#findings + 1] = {'busy', token, rest, previous}
          elseif takesLease == '1' then
            for number in string.gmatch(tags, '%d+') do
              use(KEYS[firstTag + number], epoch, tonumber(ARGV[8]))
            end
            token = nextToken()
            redis.call('SET', leaseKey, string.format('%s %s:%.0f', epoch, ARGV[6], token), 'PX', hold + ARGV[7])
            findings[#findings + 1] = {'granted', token, previous}
          else
            findings[#findings + 1] = {'nothing', previous}
          end
        end
      end
      return findings
      """
  )

  /// KEYS: epoch, tokens, entry, lease, fetch, then the tags.
  ///
  /// ARGV: epoch and token of the lease, node, schema, payload, ms of retention.
  static let fill = RedisScript(
    common + """
      local own = string.format('%s %s:%s', ARGV[1], ARGV[3], ARGV[2])
      local time = now()
      local holds = run('GET', KEYS[4]) == own
      if holds then
        holds = remaining(KEYS[4], KEYS[5], ARGV[2], time) > 0
        redis.call('DEL', KEYS[4])
      end
      local values = redis.call('MGET', KEYS[1], KEYS[2])
      if values[1] ~= ARGV[1] then return 'cleared' end
      local e = run('HMGET', KEYS[3], 'e', 'v', 'o')
      local token = tonumber(ARGV[2])
      latest = number(values[2], largest) or token
      if not holds or e[1] == ARGV[1] and (number(e[2], latest) or 0) >= token
        or (number(e[3], latest) or 0) >= token then
        return 'superseded'
      end
      for index = 6, #KEYS do
        local removal = mark(KEYS[index], ARGV[1])
        if not removal or removal >= token then return 'superseded' end
      end
      for index = 6, #KEYS do
        -- A mark lasts longer than the entries that it judges.
        if redis.call('PTTL', KEYS[index]) < tonumber(ARGV[6]) then
          redis.call('PEXPIRE', KEYS[index], string.format('%.0f', 2 * ARGV[6]))
          redis.call('GET', KEYS[index])
        end
      end
      redis.call('DEL', KEYS[3], KEYS[5])
      redis.call('HSET', KEYS[3], 'e', ARGV[1], 'v', ARGV[2], 't', time, 's', ARGV[4], 'd', ARGV[5])
      redis.call('PEXPIRE', KEYS[3], ARGV[6])
      -- The change has ended the tracking for this node, too. It begins again with the next reading.
      redis.call('HGET', KEYS[3], 'v')
      return 'stored'
      """
  )

  /// KEYS: epoch, tokens, then the entry and lease of each key, then the tags.
  ///
  /// ARGV: nonce, known epoch and token, schema, ms of retention, the number of the epoch that is required or nothing,
  /// the number of keys, then the payload of each key and the numbers of its tags.
  ///
  /// A lease that is held ends: what its holder fetches is older than what is stored.
  static let store = RedisScript(
    common + """
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      if ARGV[6] ~= '' and count(epoch) ~= tonumber(ARGV[6]) then return {epoch} end
      local time = now()
      local tokens = {epoch}
      local keyCount = tonumber(ARGV[7])
      for index = 0, keyCount - 1 do
        local entryKey, leaseKey = KEYS[3 + 2 * index], KEYS[4 + 2 * index]
        for number in string.gmatch(ARGV[9 + 2 * index], '%d+') do
          use(KEYS[2 + 2 * keyCount + number], epoch, tonumber(ARGV[5]))
        end
        local token = nextToken()
        redis.call('DEL', entryKey, leaseKey)
        redis.call('HSET', entryKey, 'e', epoch, 'v', token, 't', time, 's', ARGV[4], 'd', ARGV[8 + 2 * index])
        redis.call('PEXPIRE', entryKey, ARGV[5])
        -- As in a fill: this node has a copy, and has to hear of changes.
        redis.call('HGET', entryKey, 'v')
        tokens[#tokens + 1] = token
      end
      return tokens
      """
  )

  /// KEYS: lease and fetch of each key.
  ///
  /// ARGV: node, payload of the failure or nothing, ms of its retention, then
  /// epoch and token of each lease.
  static let release = RedisScript(
    common + """
      local released = 0
      for index = 0, #KEYS / 2 - 1 do
        local leaseKey, fetchKey = KEYS[1 + 2 * index], KEYS[2 + 2 * index]
        local epoch, token = ARGV[4 + 2 * index], ARGV[5 + 2 * index]
        if run('GET', leaseKey) == string.format('%s %s:%s', epoch, ARGV[1], token) then
          -- The failure comes before the end of the lease, which wakes the nodes that wait. A server without memory
          -- takes no failure: one of these nodes fetches.
          if ARGV[2] ~= '' and pcall(run, 'HSET', fetchKey, 'v', token, 'd', ARGV[2]) then
            redis.call('PEXPIRE', fetchKey, ARGV[3])
          end
          redis.call('DEL', leaseKey)
          released = released + 1
        end
      end
      return released
      """
  )

  /// KEYS: lease and fetch of each key.
  ///
  /// ARGV: node, ms of a lease, then epoch and token of each lease.
  ///
  /// The key of a lease, which waiting nodes track, is changed at most every half hour.
  static let renew = RedisScript(
    common + """
      local time = now()
      local lost = {}
      for index = 1, #KEYS / 2 do
        local leaseKey, fetchKey = KEYS[2 * index - 1], KEYS[2 * index]
        local epoch, token = ARGV[1 + 2 * index], ARGV[2 + 2 * index]
        if run('GET', leaseKey) == string.format('%s %s:%s', epoch, ARGV[1], token)
          and remaining(leaseKey, fetchKey, token, time) > 0 then
          run('HSET', fetchKey, 'l', token, 'u', string.format('%.0f', time + ARGV[2]))
          redis.call('PEXPIRE', fetchKey, ARGV[2])
          if redis.call('PTTL', leaseKey) < hold / 2 then
            redis.call('PEXPIRE', leaseKey, hold + ARGV[2])
          end
        else
          lost[#lost + 1] = index
        end
      end
      return lost
      """
  )

  /// KEYS: epoch, tokens, then entry and lease of each key.
  ///
  /// ARGV: nonce, known epoch and token, ms of retention.
  ///
  /// Entries stay as fallbacks. A lease that is held ends, since its fetch may have begun before the change.
  static let outdate = RedisScript(
    common + """
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      local token = nextToken()
      for index = 0, (#KEYS - 2) / 2 - 1 do
        local entryKey, leaseKey = KEYS[3 + 2 * index], KEYS[4 + 2 * index]
        run('HSET', entryKey, 'o', token)
        if redis.call('PTTL', entryKey) < 0 then redis.call('PEXPIRE', entryKey, ARGV[4]) end
        redis.call('DEL', leaseKey)
      end
      return {epoch, token}
      """
  )

  /// KEYS: epoch, tokens, then entry, lease and fetch of each key.
  ///
  /// ARGV: nonce, known epoch and token, ms of retention.
  ///
  /// The entry becomes a tombstone with the version of the removal, which is kept for a while.
  static let remove = RedisScript(
    common + """
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      local token = nextToken()
      for index = 0, (#KEYS - 2) / 3 - 1 do
        local entryKey = KEYS[3 + 3 * index]
        redis.call('DEL', entryKey, KEYS[4 + 3 * index], KEYS[5 + 3 * index])
        redis.call('HSET', entryKey, 'e', epoch, 'v', token)
        redis.call('PEXPIRE', entryKey, ARGV[4])
      end
      return {epoch, token}
      """
  )

  /// KEYS: epoch, tokens, then the tags.
  ///
  /// ARGV: nonce, known epoch and token.
  ///
  /// Entries and leases with a tag that is not known are not valid. The next use of the tag gives it a higher token.
  static let removeTags = RedisScript(
    common + """
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      local token = nextToken()
      for index = 3, #KEYS do redis.call('DEL', KEYS[index]) end
      return {epoch, token}
      """
  )

  /// KEYS: epoch, tokens.
  ///
  /// ARGV: nonce, known epoch and token.
  static let removeAll = RedisScript(
    common + """
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      epoch = string.format('%.0f-%s', count(epoch) + 1, ARGV[1])
      redis.call('SET', KEYS[1], epoch)
      return epoch
      """
  )

  // MARK: - Nodes

  /// KEYS: epoch, tokens, fence.
  ///
  /// ARGV: nonce, known epoch and token.
  ///
  /// Every node ends the trust in its copies, which stay valid.
  static let fence = RedisScript(
    common + """
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      local token = nextToken()
      redis.call('SET', KEYS[3], token)
      return {epoch, token}
      """
  )

  /// KEYS: epoch, tokens, nodes, acknowledgements, fence.
  ///
  /// ARGV: nonce, known epoch and token, node, ms of trust, the epoch and fence that it acknowledges or nothing.
  ///
  /// Nodes that have not been heard of for a minute are forgotten.
  static let beat = RedisScript(
    common + """
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      local time = now()
      lastLoss(KEYS[3], KEYS[4], time)
      local gone = run('ZRANGEBYSCORE', KEYS[3], '(-2', time - 60000)
      for _, node in ipairs(gone) do
        redis.call('ZREM', KEYS[3], node)
        run('HDEL', KEYS[4], node)
      end
      local fence = lastFence(KEYS[5])
      -- At the end: a change of these keys ends their tracking, which nodes need only while they wait for others.
      redis.call('ZADD', KEYS[3], time + ARGV[5], ARGV[4])
      run('HSET', KEYS[4], ARGV[4], ARGV[6])
      return {epoch, fence}
      """
  )

  /// KEYS: nodes, acknowledgements, fence.
  ///
  /// ARGV: epoch and fence, ms of trust.
  ///
  /// A fence that was lost is set again. Returns how long the nodes that have not acknowledged them can still trust their
  /// copies, in ms. Nodes whose registrations were lost can trust theirs for the whole time since then.
  static let laggards = RedisScript(
    common + """
      local time = now()
      local longest = math.max(0, lastLoss(KEYS[1], KEYS[2], time) + ARGV[3] - time)
      if lastFence(KEYS[3]) < tonumber(ARGV[2]) then redis.call('SET', KEYS[3], ARGV[2]) end
      local nodes = run('ZRANGEBYSCORE', KEYS[1], time, '+inf', 'WITHSCORES')
      for index = 1, #nodes, 2 do
        local acknowledged = run('HGET', KEYS[2], nodes[index]) or ''
        local epoch, fence = string.match(acknowledged, '^([^ ]+) (%d+)$')
        local hasPassed = epoch
          and (count(epoch) > count(ARGV[1]) or epoch == ARGV[1] and tonumber(fence) >= tonumber(ARGV[2]))
        if not hasPassed then longest = math.max(longest, tonumber(nodes[index + 1]) - time + 1) end
      end
      return longest
      """
  )

  /// KEYS: nodes, acknowledgements.
  ///
  /// ARGV: node.
  static let leave = RedisScript(
    common + """
      run('ZREM', KEYS[1], ARGV[1])
      run('HDEL', KEYS[2], ARGV[1])
      return 1
      """
  )
}
