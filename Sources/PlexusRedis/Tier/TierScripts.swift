/// The changes of a space, each carried out by the engine as a whole.
enum TierScripts {
  /// The largest number of an engine that is no damage: up to it, scripts count exactly.
  static let largestNumber: UInt64 = 1 << 53
  /// The number of tokens in a block.
  ///
  /// Two tokens of one block are given out without a restart of the server in between.
  static let blockSize: UInt64 = 1 << 18
  /// The numbers of blocks that a restarted server skips: more than it can have lost.
  ///
  /// It is another one each time, since the history that was lost can have had a restart itself.
  static let skips: ClosedRange<UInt64> = 128...131_072

  /// The functions that the scripts share.
  ///
  /// Scripts that use `current` have the epoch, the tokens and the schemas as their first three keys. A server without
  /// memory refuses the first change of a script if it needs memory, and none after a change that needs none. The scripts
  /// that remove something begin with such a change: unlike the flag `allow-oom`, this works with every version.
  static let common = """
    -- Runs a command on a key. A key to which another program has given another type is removed before.
    local function run(command, key, ...)
      local reply = redis.pcall(command, key, ...)
      if type(reply) ~= 'table' or not reply.err then return reply end
      if string.find(reply.err, 'WRONGTYPE', 1, true) then redis.call('DEL', key) end
      return redis.call(command, key, ...)
    end
    local largest, block = \(largestNumber), \(blockSize)
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
    -- Announces a change of a key that is not there to the nodes that have looked for it.
    local function touch(key)
      redis.call('SET', key, '')
      redis.call('DEL', key)
    end
    -- Changes a key that all nodes follow. The change would end its tracking for this node, too, to which it is not
    -- announced: tracking begins again with the next reading.
    local function publish(key, value)
      redis.call('SET', key, value)
      redis.call('GET', key)
    end
    -- Permits the changes of a script that begins with it to a server without memory.
    local function free(key) run('HDEL', key, ' ') end
    -- The longest trust of a node in ms with the tokens that were skipped, and the schemas with the times up to which
    -- they can have entries or leases.
    local schemas
    -- The epoch, the last token and the schemas. An engine that has lost one of them, or has less than the node knows,
    -- gets a new epoch that is higher, and so does a change that asks for one.
    local function current(known, token, nonce, raises)
      local values = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
      local epoch = values[1]
      schemas = values[3]
      token = tonumber(token)
      latest = number(values[2], largest)
      local isLost = not number(string.match(schemas or '', '^%d+'), 1e15)
      local isBehind = isLost or not latest or latest < token or raises
      if epoch == known and not isBehind and latest - latest % block ~= token - token % block then
        -- A node whose token was skipped after a restart has seen more than the server had.
        for from, to in string.gmatch(string.match(schemas, '^%S+'), ':(%d+)%-(%d+)') do
          if token > tonumber(from) then
            isBehind = token < tonumber(to)
            break
          end
        end
      end
      if epoch == known and epoch ~= '' and not isBehind then return epoch end
      local here, there = count(epoch), count(known)
      if isLost then
        -- Unless the space is new, nodes can have been registered.
        schemas = (epoch or known ~= '') and '1' or '0'
        redis.call('SET', KEYS[3], schemas)
      end
      if not latest or latest < token then
        latest = token
        redis.call('SET', KEYS[2], string.format('%.0f', token))
      end
      if isBehind or here == 0 or here < there or (here == there and epoch ~= known) then
        epoch = string.format('%.0f-%s', math.max(here, there) + 1, nonce)
        publish(KEYS[1], epoch)
        -- It does not matter any longer which tokens were lost.
        local rest = string.gsub(schemas, '^([^: ]*):%S*', '%1')
        if rest ~= schemas then
          schemas = rest
          redis.call('SET', KEYS[3], schemas)
        end
      end
      return epoch
    end
    -- Notes that a schema can have entries and leases for some ms from now on.
    local function enroll(schema, time, span)
      local _, last = string.find(schemas, ' ' .. schema .. '=', 1, true)
      local till = last and number(string.match(schemas, '^%d+', last + 1), 1e15) or 0
      if till >= time + span then return end
      local list = string.match(schemas, '^%S+')
      for name, till in string.gmatch(schemas, ' (%S+)=(%d+)') do
        if name ~= schema and (number(till, 1e15) or 0) >= time then list = list .. ' ' .. name .. '=' .. till end
      end
      schemas = string.format('%s %s=%.0f', list, schema, time + 2 * span)
      redis.call('SET', KEYS[3], schemas)
    end
    -- Whether there are other schemas than those whose keys a call has.
    local function misses(names)
      for name in string.gmatch(schemas, ' (%S+)=%d+') do
        if not string.find(names, ' ' .. name .. ' ', 1, true) then return true end
      end
      return false
    end
    local function now()
      local time = redis.call('TIME')
      return time[1] * 1000 + math.floor(time[2] / 1000)
    end
    -- The key of a lease lasts a day longer than the lease, which the nodes that wait for it judge by their own clocks.
    local hold = 86400000
    -- The last renewal of a lease, which is noted elsewhere, so that it wakes no waiting node; 0 for none.
    local function lastRenewal(fetchKey, token)
      local renewal = run('HMGET', fetchKey, 'l', 'u')
      return renewal[1] == token and number(renewal[2], 1e15) or 0
    end
    -- Forgets the renewals of a lease that has ended.
    local function forget(fetchKey, token)
      if run('HGET', fetchKey, 'l') == token then redis.call('HDEL', fetchKey, 'l', 'u') end
    end
    -- The token of the last removal by a tag, or of the first use of the tag after it; nothing if it is not known.
    local function mark(key, epoch)
      local ofEpoch, token = string.match(run('GET', key) or '', '^([^ ]+) (%d+)$')
      return ofEpoch == epoch and number(token, latest) or nil
    end
    -- The name of the last loss of registrations; 0 for none. A member without a name is in a set of nodes that is
    -- complete since then, and the acknowledgements have the loss under the same name. A loss that is found is announced
    -- by the fence, which stays the same: the other nodes register again.
    local function lastLoss(nodes, acknowledgements, fence, isNew, name)
      local loss = run('HGET', acknowledgements, '')
      local isComplete = #run('ZRANGEBYSCORE', nodes, -2, -2) > 0
      if loss and isComplete then return loss end
      loss = isNew and not loss and not isComplete and '0' or name
      redis.call('ZADD', nodes, -2, '')
      redis.call('HSET', acknowledgements, '', loss)
      if loss ~= '0' then publish(fence, string.format('%.0f', lastFence(fence))) end
      return loss
    end
    -- Marks a tag that is not known: entries and leases from before are not valid. A mark lasts longer than the entries
    -- that it judges.
    local function use(key, epoch, span)
      local twice = string.format('%.0f', 2 * span)
      if not mark(key, epoch) then
        redis.call('SET', key, string.format('%s %.0f', epoch, nextToken()), 'PX', twice)
      elseif redis.call('PTTL', key) < tonumber(span) then
        redis.call('PEXPIRE', key, twice)
      else
        return
      end
      -- The change has ended the tracking for this node, too. It begins again with the next reading.
      redis.call('GET', key)
    end

    """

  /// KEYS: epoch, tokens, schemas, then entry, lease and fetch of each key, then the tags.
  ///
  /// ARGV: nonce, known epoch and token, schema, the number of keys, holder, ms of a lease, ms of retention, then a wish
  /// for each key: whether a lease is wanted, and if there is more, the epoch and token of the version that is not new
  /// enough, the token of the lease that the node waits for, the token and renewal of a lease that is over by the clock
  /// of the node, and the numbers of its tags.
  ///
  /// The findings come after the epoch, the nonce, which tells the replies to two looks apart, and the time. An entry is a
  /// text, since it is the most frequent finding: its token, its age in ms and the payload. A lease that another node
  /// holds has a token, a length in ms, the previous entry, the last renewal, and the rest in ms if the clock of the
  /// engine was not set since then.
  static let look = RedisScript(
    "looks",
    common + """
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      local time = now()
      local findings = {epoch, ARGV[1], time}
      local keyCount = tonumber(ARGV[5])
      local firstTag = 3 + 3 * keyCount
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
        local entryKey, leaseKey, fetchKey = KEYS[4 + 3 * index], KEYS[5 + 3 * index], KEYS[6 + 3 * index]
        local takesLease, oldEpoch, oldToken, awaited, over, tags = ARGV[9 + index], '', 0, 0, '', ''
        if #takesLease > 1 then
          takesLease, oldEpoch, oldToken, awaited, over, tags =
            string.match(takesLease, '^(%d) (%S*) (%d+) (%d+) (%d+:%d+) (.*)$')
          oldToken, awaited = tonumber(oldToken), tonumber(awaited)
        end
        local e = run('HMGET', entryKey, 'e', 'v', 't', 'd', 'o')
        local token, payload, outdated = e[2], e[4], e[5]
        local stored = number(token, latest) and number(e[3], 1e15)
        local isThere = e[1] == epoch and payload and stored and isValid(token, tags)
        local age = isThere and string.format('%.0f', math.max(0, time - stored))
        if isThere and (not outdated or (number(outdated, 2 ^ 63) or latest) < tonumber(token))
          and (oldEpoch ~= epoch or tonumber(token) > oldToken) then
          findings[#findings + 1] = token .. ' ' .. age .. ' ' .. payload
        else
          local previous = isThere and {token, age, payload}
          local lease = run('GET', leaseKey)
          local token = lease and string.match(lease, ':(%d+)$')
          if not token or string.match(lease, '^[^ ]+') ~= epoch or not isValid(token, tags) then lease = false end
          local renewal = lease and lastRenewal(fetchKey, token)
          -- Only a node that has measured the length of a lease by its own clock ends it.
          if lease and over == string.format('%s:%.0f', token, renewal) then lease = false end
          local failure = awaited > 0 and run('HMGET', fetchKey, 'v', 'd', 'x')
          if failure and (number(failure[1], latest) or 0) >= awaited
            and (number(failure[3], 1e15) or time) >= time then
            findings[#findings + 1] = {'failed', failure[2]}
          elseif lease then
            local length = number(string.match(lease, '/(%d+):%d+$'), hold)
            local rest = length and (renewal > 0 and renewal - time or redis.call('PTTL', leaseKey) - hold)
            length = length or tonumber(ARGV[7])
            findings[#findings + 1] = {'busy', token, length, previous, renewal, rest or length}
          elseif takesLease == '1' then
            for number in string.gmatch(tags, '%d+') do
              use(KEYS[firstTag + number], epoch, ARGV[8])
            end
            token = nextToken()
            enroll(ARGV[4], time, hold + ARGV[8])
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

  /// KEYS: epoch, tokens, schemas, entry, lease, fetch, then the tags.
  ///
  /// ARGV: epoch and token of the lease, holder, schema, payload, ms for which the entry is kept.
  static let fill = RedisScript(
    "fills",
    common + """
      local own = string.format('%s %s:%s', ARGV[1], ARGV[3], ARGV[2])
      local time = now()
      -- A lease whose time is over holds as well, until it is taken over.
      local holds = run('GET', KEYS[5]) == own
      if holds then redis.call('DEL', KEYS[5], KEYS[6]) else forget(KEYS[6], ARGV[2]) end
      local values = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3])
      if values[1] ~= ARGV[1] then return 'cleared' end
      local e = run('HMGET', KEYS[4], 'e', 'v', 'o')
      local token = tonumber(ARGV[2])
      latest = number(values[2], largest) or token
      schemas = values[3] or ''
      -- A removal ends no leases of a schema that is not enrolled.
      if not holds or not string.find(schemas, ' ' .. ARGV[4] .. '=', 1, true)
        or e[1] == ARGV[1] and (number(e[2], latest) or 0) >= token
        or (number(e[3], latest) or 0) >= token then
        return 'superseded'
      end
      for index = 7, #KEYS do
        local removal = mark(KEYS[index], ARGV[1])
        if not removal or removal >= token then return 'superseded' end
      end
      for index = 7, #KEYS do use(KEYS[index], ARGV[1], ARGV[6]) end
      enroll(ARGV[4], time, ARGV[6])
      redis.call('DEL', KEYS[4])
      redis.call('HSET', KEYS[4], 'e', ARGV[1], 'v', ARGV[2], 't', time, 'd', ARGV[5])
      redis.call('PEXPIRE', KEYS[4], ARGV[6])
      -- The change has ended the tracking for this node, too. It begins again with the next reading.
      redis.call('HGET', KEYS[4], 'v')
      return 'stored'
      """
  )

  /// KEYS: epoch, tokens, schemas, then the entry and lease of each key in each schema, then the tags.
  ///
  /// ARGV: nonce, known epoch and token, the schemas whose keys the call has, the first of which is the node's, their
  /// number, the number of the epoch that is required or nothing, the number of keys, then the payload of each key, ms for
  /// which the entry is kept, the numbers of its tags, the token since which the key must not have changed, or nothing, and the
  /// name of the cache with the number of the value in it, or nothing.
  ///
  /// Leases that are held end: what their holders fetch is older than what is stored, and so are the entries of other
  /// schemas.
  ///
  /// Returns the epoch and the token of each entry, 0 for one whose key can have changed. Returns the schemas if a call does
  /// not have the keys of all of them.
  static let store = RedisScript(
    "stores",
    common + """
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      if ARGV[6] ~= '' and count(epoch) ~= tonumber(ARGV[6]) then return {epoch} end
      if misses(ARGV[4]) then return schemas end
      local time = now()
      local tokens = {epoch}
      local width, keyCount = 2 * ARGV[5], tonumber(ARGV[7])
      local firstTag = 3 + width * keyCount
      -- Whether an entry comes from an earlier store by the same cache, or from the same one, whose reply was lost.
      local function isOwn(id, other)
        local cache, value = string.match(id or '', '^(%w+) (%d+)$')
        local otherCache, otherValue = string.match(other, '^(%w+) (%d+)$')
        return cache and cache == otherCache and tonumber(value) <= tonumber(otherValue)
      end
      -- Whether a key can have changed since a token, other than by its own cache. One without an entry can have been
      -- removed.
      local function hasChanged(entryKey, token, tags, id)
        local e = run('HMGET', entryKey, 'e', 'v', 'o', 'i')
        local version = number(e[2], latest)
        if e[1] ~= epoch or not version then return true end
        if isOwn(e[4], id) then token = math.max(token, version) end
        if version > token then return true end
        if e[3] and (number(e[3], latest) or largest) > token then return true end
        for number in string.gmatch(tags, '%d+') do
          if (mark(KEYS[firstTag + number], epoch) or largest) > token then return true end
        end
        return false
      end
      local function store(first, payload, span, tags, id)
        local entryKey, leaseKey = KEYS[first], KEYS[first + 1]
        for number in string.gmatch(tags, '%d+') do use(KEYS[firstTag + number], epoch, span) end
        local token = nextToken()
        enroll(string.match(ARGV[4], '%S+'), time, span)
        redis.call('DEL', entryKey, leaseKey)
        redis.call('HSET', entryKey, 'e', epoch, 'v', token, 't', time, 'd', payload, 'i', id)
        redis.call('PEXPIRE', entryKey, span)
        -- As in a fill: this node has a copy, and has to hear of changes.
        redis.call('HGET', entryKey, 'v')
        for other = first + 2, first + width - 2, 2 do
          redis.call('DEL', KEYS[other + 1])
          if run('HGET', KEYS[other], 'v') then redis.call('HSET', KEYS[other], 'o', token) end
        end
        return token
      end
      for index = 0, keyCount - 1 do
        local first, values = 4 + width * index, 8 + 5 * index
        local tags, token, id = ARGV[values + 2], tonumber(ARGV[values + 3]), ARGV[values + 4]
        tokens[#tokens + 1] = token and hasChanged(KEYS[first], token, tags, id) and 0
          or store(first, ARGV[values], ARGV[values + 1], tags, id)
      end
      return tokens
      """
  )

  /// KEYS: lease and fetch of each key.
  ///
  /// ARGV: holder, payload of the failure or nothing, ms of its retention, then
  /// epoch and token of each lease.
  static let release = RedisScript(
    "releases of leases",
    common + """
      local released = 0
      local till = string.format('%.0f', now() + ARGV[3])
      for index = 0, #KEYS / 2 - 1 do
        local leaseKey, fetchKey = KEYS[1 + 2 * index], KEYS[2 + 2 * index]
        local epoch, token = ARGV[4 + 2 * index], ARGV[5 + 2 * index]
        local holds = run('GET', leaseKey) == string.format('%s %s:%s', epoch, ARGV[1], token)
        -- The failure comes before the end of the lease, which wakes the nodes that wait. A server without memory
        -- takes no failure: one of these nodes fetches.
        if holds and ARGV[2] ~= '' then pcall(run, 'HSET', fetchKey, 'v', token, 'd', ARGV[2], 'x', till) end
        forget(fetchKey, token)
        if holds then
          redis.call('PEXPIRE', fetchKey, ARGV[3])
          redis.call('DEL', leaseKey)
          released = released + 1
        end
      end
      return released
      """
  )

  /// KEYS: lease and fetch of each key.
  ///
  /// ARGV: holder, ms of a lease, then epoch and token of each lease.
  ///
  /// A lease is lost if another node has taken it over, whatever the time. Each renewal has a higher number than the one
  /// before it, even if the clock of the engine was set back. The key of a lease, which waiting nodes track, is changed at
  /// most every twelve hours.
  static let renew = RedisScript(
    "renewals of leases",
    common + """
      free(KEYS[2])
      local time = now()
      local lost = {}
      for index = 1, #KEYS / 2 do
        local leaseKey, fetchKey = KEYS[2 * index - 1], KEYS[2 * index]
        local epoch, token = ARGV[1 + 2 * index], ARGV[2 + 2 * index]
        if run('GET', leaseKey) == string.format('%s %s:%s', epoch, ARGV[1], token) then
          local renewal = math.max(time + ARGV[2], lastRenewal(fetchKey, token) + 1)
          run('HSET', fetchKey, 'l', token, 'u', string.format('%.0f', renewal))
          redis.call('PEXPIRE', fetchKey, hold)
          if redis.call('PTTL', leaseKey) < hold / 2 then
            redis.call('PEXPIRE', leaseKey, hold + ARGV[2])
          end
        else
          forget(fetchKey, token)
          lost[#lost + 1] = index
        end
      end
      return lost
      """
  )

  /// KEYS: epoch, tokens, schemas, then entry and lease of each key in each schema.
  ///
  /// ARGV: nonce, known epoch and token, the schemas whose keys the call has.
  ///
  /// Entries stay as fallbacks. A lease that is held ends, since its fetch may have begun before the change.
  ///
  /// Returns the schemas if a call does not have the keys of all of them.
  static let outdate = RedisScript(
    "refreshes",
    common + """
      for index = 5, #KEYS, 2 do redis.call('DEL', KEYS[index]) end
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      if misses(ARGV[4]) then return schemas end
      local token = nextToken()
      for index = 4, #KEYS, 2 do
        if run('HGET', KEYS[index], 'v') then
          redis.call('HSET', KEYS[index], 'o', token)
        else
          touch(KEYS[index])
        end
      end
      return {epoch, token}
      """
  )

  /// KEYS: epoch, tokens, schemas, then entry, lease and fetch of each key in each schema.
  ///
  /// ARGV: nonce, known epoch and token, the schemas whose keys the call has.
  ///
  /// Returns the schemas if a call does not have the keys of all of them.
  static let remove = RedisScript(
    "removals",
    common + """
      for index = 4, #KEYS, 3 do
        redis.call('DEL', KEYS[index + 1], KEYS[index + 2])
        if redis.call('DEL', KEYS[index]) == 0 then touch(KEYS[index]) end
      end
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      if misses(ARGV[4]) then return schemas end
      return {epoch, nextToken()}
      """
  )

  /// KEYS: epoch, tokens, schemas, then the tags.
  ///
  /// ARGV: nonce, known epoch and token.
  ///
  /// Entries and leases with a tag that is not known are not valid. The next use of the tag gives it a higher token.
  static let removeTags = RedisScript(
    "removals by tag",
    common + """
      for index = 4, #KEYS do redis.call('DEL', KEYS[index]) end
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      return {epoch, nextToken()}
      """
  )

  /// KEYS: epoch, tokens, schemas, acknowledgements.
  ///
  /// ARGV: nonce, known epoch and token, the number of an epoch, above which it is not raised, or nothing.
  static let removeAll = RedisScript(
    "removals of everything",
    common + """
      free(KEYS[4])
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      if ARGV[4] ~= '' and count(epoch) > tonumber(ARGV[4]) then
        -- A change for which replicas can be waited.
        nextToken()
      else
        epoch = current(epoch, 0, ARGV[1], true)
      end
      return {epoch, latest}
      """
  )
}
