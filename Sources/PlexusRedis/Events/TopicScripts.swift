/// The changes of a topic, each carried out by the engine as a whole.
enum TopicScripts {
  /// The functions that the scripts share.
  private static let common = """
    local function milliseconds()
      local time = redis.call('TIME')
      return time[1] * 1000 + math.floor(time[2] / 1000)
    end
    -- The id of the last entry that a stream has had.
    local function last(key)
      local info = redis.call('XINFO', 'STREAM', key)
      for index = 1, #info, 2 do
        if info[index] == 'last-generated-id' then return info[index + 1] end
      end
    end
    local function epoch(id) return string.match(id, '^%d+') end
    -- Appends an entry with the next number. A stream that was lost, or that is older than the node knows, gets
    -- a new epoch that is higher than all before, whose first entry reports the loss.
    local function append(key, length, known, isBehind, fields)
      local function add(epoch) return redis.pcall('XADD', key, epoch .. '-*', unpack(fields)) end
      local function fresh()
        local latest = redis.call('EXISTS', key) == 1 and epoch(last(key)) or 0
        if known ~= '' then
          fields[#fields + 1] = 'l'
          fields[#fields + 1] = '1'
        end
        return string.format('%.0f',
          math.max(milliseconds(), (tonumber(known) or 0) + 1, tonumber(latest) + 1))
      end
      local id
      if length == 0 or isBehind then
        id = add(fresh())
      elseif known == '' then
        id = add(epoch(last(key)))
      else
        id = add(known)
        if type(id) == 'string' and string.match(id, '-(%d+)$') == '0' then
          redis.call('XDEL', key, id)
          id = add(fresh())
        end
      end
      -- Another program has appended an entry with a higher id.
      if type(id) == 'table' and redis.call('EXISTS', key) == 1 then id = add(epoch(last(key))) end
      return id
    end
    local function announce(channel, id, header, body)
      return redis.call('PUBLISH', channel, table.concat({id, '\\n', #header, '\\n', header, body}))
    end

    """

  /// KEYS: stream, numbers of the node.
  ///
  /// ARGV: number of the batch, slot, known epoch, limit, channel; slot, number and first position of an earlier batch that
  /// the engine remembers unless it has lost it, the slot being empty if there is none; ms for which it remembers; then
  /// header and body of each message.
  ///
  /// Returns the first position, those of the further messages following it, then the number and the error of each message
  /// that was refused.
  ///
  /// A batch whose number the engine remembers is not appended again. Entries beyond the limit are removed,
  /// unless a group still needs them: beyond twice the limit, messages are refused. Nothing that can fail as a whole
  /// comes after the first message.
  static let publish = RedisScript(
    common + """
      local own, earlier = unpack(redis.call('HMGET', KEYS[2], ARGV[2], ARGV[6]))
      if own then
        local number, first, refused = string.match(own, '^(%d+) (%S+)(.*)$')
        if number == ARGV[1] then
          local reply = {first}
          for index in string.gmatch(refused, '%d+') do
            reply[#reply + 1] = {tonumber(index), redis.error_reply('REFUSED The engine has refused the message before.')}
          end
          return reply
        end
        if tonumber(number) > tonumber(ARGV[1]) then
          return redis.error_reply('FORGOTTEN The engine no longer knows whether it has the message.')
        end
      end
      -- A server that was restarted with old data lacks the latest messages of the node.
      local isBehind = false
      if ARGV[6] ~= '' then
        local number, first = string.match(earlier or '', '^(%d+) (%S+)')
        isBehind = not number or tonumber(number) < tonumber(ARGV[7])
          or (number == ARGV[7] and first ~= ARGV[8])
      end
      local limit = tonumber(ARGV[4])
      local length = redis.call('XLEN', KEYS[1])
      local count = (#ARGV - 9) / 2
      local full
      if length + count > limit + limit / 10 then
        local function before(a, b)
          local a1, a2 = string.match(a, '(%d+)-(%d+)')
          local b1, b2 = string.match(b, '(%d+)-(%d+)')
          if a1 ~= b1 then return tonumber(a1) < tonumber(b1) end
          return tonumber(a2) < tonumber(b2)
        end
        local needed, slowest
        for _, info in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
          local group = {}
          for index = 1, #info, 2 do group[info[index]] = info[index + 1] end
          local oldest = group['last-delivered-id']
          if group['pending'] > 0 then
            oldest = redis.call('XPENDING', KEYS[1], group['name'])[2]
          end
          if not needed or before(oldest, needed) then needed, slowest = oldest, group['name'] end
        end
        if needed then
          redis.call('XTRIM', KEYS[1], 'MINID', '~', needed, 'LIMIT', length - limit)
        else
          redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', limit)
        end
        full = redis.error_reply('FULL The group ' .. (slowest or '') .. ' is '
          .. length .. ' messages behind. Handle them, or remove the group by XGROUP DESTROY.')
        length = redis.call('XLEN', KEYS[1])
      end
      local reply, refused, ids, following = {false}, '', {}, nil
      for index = 1, count do
        local header, body = ARGV[8 + 2 * index], ARGV[9 + 2 * index]
        local id
        if length >= 2 * limit then
          id = full
        elseif following then
          id = redis.pcall('XADD', KEYS[1], following, 'h', header, 'd', body)
        else
          id = append(KEYS[1], length, ARGV[3], isBehind, {'h', header, 'd', body})
          if type(id) == 'string' then reply[1], following = id, epoch(id) .. '-*' end
        end
        if type(id) == 'string' then
          length = length + 1
          ids[index] = id
        else
          refused = refused .. ' ' .. index
          reply[#reply + 1] = {index, id}
        end
      end
      if not following then return reply end
      redis.call('HSET', KEYS[2], ARGV[2], ARGV[1] .. ' ' .. reply[1] .. refused)
      redis.call('PEXPIRE', KEYS[2], ARGV[9])
      for index = 1, count do
        -- If nothing receives the first one, nothing receives the others.
        if ids[index] and announce(ARGV[5], ids[index], ARGV[8 + 2 * index], ARGV[9 + 2 * index]) == 0 then break end
      end
      return reply
      """
  )

  /// KEYS: stream.
  ///
  /// ARGV: group, consumer, ms without an answer, count.
  ///
  /// Returns the id, the fields and the attempt of each message; no fields for a message that was removed.
  static let claim = RedisScript(
    """
    local pending = redis.call('XPENDING', KEYS[1], ARGV[1], 'IDLE', ARGV[3], '-', '+', ARGV[4])
    local result = {}
    for _, entry in ipairs(pending) do
      local claimed = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], ARGV[3], entry[1])
      if claimed[1] then
        result[#result + 1] = {entry[1], claimed[1][2], entry[4] + 1}
      else
        redis.call('XACK', KEYS[1], ARGV[1], entry[1])
        result[#result + 1] = {entry[1], false, 0}
      end
    end
    return result
    """
  )

  /// KEYS: stream.
  ///
  /// ARGV: group, consumer, then the id of each message.
  ///
  /// Returns the ids of the messages that the consumer still has.
  static let renew = RedisScript(
    """
    local kept = {}
    for index = 3, #ARGV do
      local id = ARGV[index]
      if redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1, ARGV[2])[1] then
        redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id, 'JUSTID')
        kept[#kept + 1] = id
      end
    end
    return kept
    """
  )

  /// KEYS: stream.
  ///
  /// ARGV: group, consumer, ms without an answer, then the id of each message that was read and not delivered.
  ///
  /// Other consumers can claim the messages at once.
  static let leave = RedisScript(
    """
    local unused = {}
    for index = 4, #ARGV do unused[ARGV[index]] = true end
    local pending = redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 10000, ARGV[2])
    for _, entry in ipairs(pending) do
      local attempts = entry[4]
      if unused[entry[1]] then attempts = math.max(0, attempts - 1) end
      redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, entry[1],
        'IDLE', ARGV[3], 'RETRYCOUNT', attempts, 'JUSTID')
    end
    if #pending == 0 then redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2]) end
    return #pending
    """
  )

  /// KEYS: stream.
  ///
  /// ARGV: group.
  ///
  /// Creates the group from the oldest message, removes consumers that were not heard of for an hour, and returns the id of
  /// the message that was delivered last.
  static let join = RedisScript(
    """
    redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
    for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
      local consumer = {}
      for index = 1, #info, 2 do consumer[info[index]] = info[index + 1] end
      if consumer['pending'] == 0 and consumer['idle'] > 3600000 then
        redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer['name'])
      end
    end
    for _, info in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
      local group = {}
      for index = 1, #info, 2 do group[info[index]] = info[index + 1] end
      if group['name'] == ARGV[1] then return group['last-delivered-id'] end
    end
    """
  )

  /// KEYS: stream, stream of the dead letters.
  ///
  /// ARGV: group, id, reason, limit, channel of the dead letters.
  static let reject = RedisScript(
    common + """
      if not redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)[1] then return 0 end
      local entry = redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2])[1]
      if entry then
        local fields = {}
        local header, body = '', ''
        for index = 1, #entry[2], 2 do
          local name, value = entry[2][index], entry[2][index + 1]
          if name == 'h' then header = value end
          if name == 'd' then body = value end
          -- The dead letters themselves are complete.
          if name ~= 'l' then
            fields[#fields + 1] = name
            fields[#fields + 1] = value
          end
        end
        fields[#fields + 1] = 'r'
        fields[#fields + 1] = ARGV[3]
        local id = append(KEYS[2], redis.call('XLEN', KEYS[2]), '', false, fields)
        if type(id) == 'table' then return id end
        redis.call('XTRIM', KEYS[2], 'MAXLEN', '~', ARGV[4])
        announce(ARGV[5], id, header, body)
      end
      redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
      return 1
      """
  )
}
