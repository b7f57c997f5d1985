/// The changes of a topic, each carried out by the engine as a whole.
enum TopicScripts {
  /// Reads information about streams.
  private static let information = """
    -- A table of the fields and values of a reply.
    local function asTable(reply)
      local result = {}
      for index = 1, #reply, 2 do result[reply[index]] = reply[index + 1] end
      return result
    end

    """

  /// The functions that append entries.
  private static let common =
    information + """
      local function milliseconds()
        local time = redis.call('TIME')
        return time[1] * 1000 + math.floor(time[2] / 1000)
      end
      -- The id of the last entry that a stream has had.
      local function last(key) return asTable(redis.call('XINFO', 'STREAM', key))['last-generated-id'] end
      local function epoch(id) return string.match(id, '^%d+') end
      -- A higher epoch. Another program can choose one for which the numbers of scripts are not exact.
      local function after(epoch)
        local number = tonumber(epoch) or 0
        return number + (number < 2 ^ 53 and 1 or 4096)
      end
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
          return string.format('%.0f', math.max(milliseconds(), after(known), after(latest)))
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
      -- Without the permission for the channel, it returns an error.
      local function announce(channel, id, header, body)
        return redis.pcall('PUBLISH', channel, table.concat({id, '\\n', #header, '\\n', header, body}))
      end

      """

  /// The functions that read entries.
  private static let entries = """
    -- The entry at a position, if the stream still has it.
    local function entry(key, id) return redis.call('XRANGE', key, id, id)[1] end
    local function field(entry, name)
      local value
      for index = 1, #entry[2], 2 do
        if entry[2][index] == name then value = entry[2][index + 1] end
      end
      return value
    end
    -- The header of an entry, by which it is compared.
    local function header(entry)
      if not entry then return false end
      local header = field(entry, 'h') or ''
      return #header <= 65536 and {'h', header} or {}
    end
    -- Whether an entry is the message with an id. One of another program has its position for an id.
    local function isSame(entry, id)
      local header = field(entry, 'h') or ''
      if string.sub(header, 1, #id + 1) == id .. '\\n' then return true end
      local version = #header <= 65536 and string.match(header, '^[^\\n]*\\n%-?(%d+)\\n[^\\n]*\\n')
      return id == entry[1] and (not version or #version > 18)
    end

    """

  /// The functions that measure entries.
  private static let sizes = """
    -- At least the memory that an entry needs in a reply.
    local function size(entry)
      local sum = 64 * #entry[2]
      for _, part in ipairs(entry[2]) do sum = sum + #part end
      return sum
    end
    -- The fields of an entry; of one that is larger than a limit only the header, if that is small.
    local function readable(entry, limit)
      return size(entry) <= tonumber(limit) and entry[2] or header(entry)
    end

    """

  private static let superseded =
    "return redis.error_reply('SUPERSEDED The engine has another message at the position.')"

  /// KEYS: stream, numbers of the node.
  ///
  /// ARGV: number of the batch, slot, known epoch, limit, channel; slot, number and first position of an earlier batch that
  /// the engine remembers unless it has lost it, the slot being empty if there is none; ms for which it remembers; 1 to remove
  /// messages that a group needs rather than to refuse others; then header and body of each message.
  ///
  /// Returns the first position, those of the further messages following it, then the number and the error of each message
  /// that was refused; the number is 0 for the announcement, which the stream does not depend on.
  ///
  /// A batch whose number the engine remembers is not appended again. Entries beyond the limit are removed,
  /// unless a group still needs them: beyond twice the limit, messages are refused, or the oldest ones are removed.
  static let publish = RedisScript(
    "publishing",
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
      local count = (#ARGV - 10) / 2
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
          local group = asTable(info)
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
        if ARGV[10] == '1' and length + count > 2 * limit then
          redis.call('XTRIM', KEYS[1], 'MAXLEN', math.max(limit, math.floor(limit * 1.9) - count))
          length = redis.call('XLEN', KEYS[1])
        end
      end
      local reply, refused, ids, following = {false}, '', {}, nil
      for index = 1, count do
        local header, body = ARGV[9 + 2 * index], ARGV[10 + 2 * index]
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
        if ids[index] then
          local heard = announce(ARGV[5], ids[index], ARGV[9 + 2 * index], ARGV[10 + 2 * index])
          if type(heard) == 'table' then reply[#reply + 1] = {0, heard} end
          -- If nothing receives the first one, nothing receives the others.
          if type(heard) == 'table' or heard == 0 then break end
        end
      end
      return reply
      """
  )

  // MARK: - Groups
  //
  // The messages of a reader are the one in progress and later ones that it has read ahead, in order. The server's
  // counter of a message is the attempt that its reader makes or will make, so that reading ahead costs no command
  // and no attempt: of a reader that has died, only the first message was in progress. Messages that no reader has
  // belong to the consumer "released".

  private static let groups = """
    -- Gives a message to none, unless it was removed. Returns the number of messages given.
    local function free(key, group, id, attempt, idle)
      if not entry(key, id) then return 0 end
      redis.call('XCLAIM', key, group, 'released', 0, id, 'IDLE', idle, 'RETRYCOUNT', attempt, 'JUSTID')
      return 1
    end
    -- Gives messages of a consumer that it has not renewed for a time to none: the one in hand has had its attempt.
    -- Messages that were removed stay, and are reported when their time is over.
    local function release(key, group, consumer, inHand, idle, minimum)
      local start, count = '-', 0
      repeat
        local pending = redis.call('XPENDING', key, group, 'IDLE', minimum, start, '+', 1000, consumer)
        for _, message in ipairs(pending) do
          local id, attempt = message[1], message[4]
          if id == inHand then attempt = attempt + 1 end
          count = count + free(key, group, id, attempt, idle)
          start = '(' .. id
        end
      until #pending < 1000
      return count
    end
    -- Wakes the readers of the group. A server without memory refuses it: the messages are found by the next look.
    local function wake(key, consumer)
      redis.pcall('SET', key, consumer .. ' ' .. table.concat(redis.call('TIME'), '.'), 'PX', 3600000)
    end

    """

  /// KEYS: stream, key that is tracked by the group.
  ///
  /// ARGV: group.
  ///
  /// Returns the content of the tracked key, the last position that the group has read, and the first position from that one
  /// on that the stream has.
  ///
  /// Reading by a group counts as a change, but not as reading. It is this look that makes the server announce the next
  /// message.
  static let surveyGroup = RedisScript(
    "reading by groups",
    information + """
      local last, oldest = '0-0', false
      for _, info in ipairs(redis.pcall('XINFO', 'GROUPS', KEYS[1])) do
        local group = asTable(info)
        if group['name'] == ARGV[1] then last = group['last-delivered-id'] end
      end
      if last ~= '0-0' then
        local next = redis.call('XRANGE', KEYS[1], last, '+', 'COUNT', 1)[1]
        oldest = next and next[1] or false
      end
      return {redis.call('GET', KEYS[2]), last, oldest}
      """
  )

  /// KEYS: stream.
  ///
  /// ARGV: group, consumer, ms without an answer, number of messages, number of bytes of all; number of bytes that a
  /// reply can have.
  ///
  /// Returns the id, the fields and the attempt of each message, and whether it is too large for a reply. The attempt is
  /// 0 for a message that was removed.
  static let claim = RedisScript(
    "reading by groups",
    entries + sizes + groups + """
      local key, group = KEYS[1], ARGV[1]
      local result, total, others = {}, 0, {}
      for _, message in ipairs(redis.call('XPENDING', key, group, 'IDLE', ARGV[3], '-', '+', ARGV[4])) do
        local id, owner, attempt = message[1], message[2], message[4]
        local found = entry(key, id)
        local bytes = found and size(found) or 0
        local isTooLarge = bytes > tonumber(ARGV[6])
        if isTooLarge then bytes = 0 end
        if #result > 0 and total + bytes > tonumber(ARGV[5]) then break end
        total = total + bytes
        if owner ~= 'released' and owner ~= ARGV[2] and not others[owner] then
          others[owner] = true
          if redis.call('XPENDING', key, group, '-', '+', 1, owner)[1][1] == id then
            attempt = attempt + 1
            release(key, group, owner, id, ARGV[3], ARGV[3])
          end
        end
        if found then
          redis.call('XCLAIM', key, group, ARGV[2], 0, id, 'RETRYCOUNT', attempt, 'JUSTID')
          result[#result + 1] = {id, readable(found, ARGV[6]), attempt, isTooLarge and 1 or 0}
        else
          redis.call('XACK', key, group, id)
          result[#result + 1] = {id, {}, 0, 0}
        end
      end
      return result
      """
  )

  /// KEYS: stream.
  ///
  /// ARGV: group, consumer, 1 if no other node can have taken messages over, then the id of each message.
  ///
  /// Returns the ids of the messages that the consumer still has, and the ids that no consumer has
  /// although no other node can have handled them. One that was removed from the stream stays with the
  /// consumer until its time is over, and is then reported, too: claiming it would remove it from the group.
  static let renew = RedisScript(
    "renewals of events",
    entries + """
      local kept = {}
      for index = 4, #ARGV do
        local id = ARGV[index]
        local message = redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1)[1]
        if not message then
          if ARGV[3] == '1' then kept[#kept + 1] = id end
        elseif message[2] == ARGV[2] then
          if entry(KEYS[1], id) then
            redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id, 'JUSTID')
          end
          kept[#kept + 1] = id
        end
      end
      return kept
      """
  )

  /// KEYS: stream.
  ///
  /// ARGV: group, consumer, position, id of the message.
  ///
  /// A message in progress that is neither acknowledged nor rejected waits for its next attempt. After a restart with old
  /// data, the consumer can have received another one at the position.
  static let postpone = RedisScript(
    "returns of events",
    entries + groups + """
      local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2])
      local message = not pending.err and pending[1]
      local found = message and entry(KEYS[1], ARGV[3])
      if not found or not isSame(found, ARGV[4]) then return 0 end
      return free(KEYS[1], ARGV[1], ARGV[3], message[4] + 1, 0)
      """
  )

  /// KEYS: stream, key that is tracked by the group.
  ///
  /// ARGV: group, consumer, ms without an answer, then the id of each message.
  ///
  /// Gives back messages that were read ahead. Other consumers can claim them at once, and are woken.
  static let giveBack = RedisScript(
    "returns of events",
    entries + groups + """
      local count = 0
      for index = 4, #ARGV do
        local id = ARGV[index]
        local message = redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1, ARGV[2])[1]
        if message then count = count + free(KEYS[1], ARGV[1], id, message[4], ARGV[3]) end
      end
      if count > 0 then wake(KEYS[2], ARGV[2]) end
      return count
      """
  )

  /// KEYS: stream, key that is tracked by the group.
  ///
  /// ARGV: group, consumer, ms without an answer, id of the message in hand or nothing.
  ///
  /// Other consumers can claim the messages at once, and are woken.
  static let leave = RedisScript(
    "returns of events",
    entries + groups + """
      if redis.pcall('XPENDING', KEYS[1], ARGV[1]).err then return 0 end
      local count = release(KEYS[1], ARGV[1], ARGV[2], ARGV[4], ARGV[3], 0)
      if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) == 0 then
        redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
      end
      if count > 0 then wake(KEYS[2], ARGV[2]) end
      return count
      """
  )

  /// KEYS: stream.
  ///
  /// ARGV: group.
  ///
  /// Creates the group from the oldest message, removes consumers that were not heard of for an hour, and returns the id and
  /// the header of the message that was delivered last.
  static let join = RedisScript(
    "joining groups",
    information + entries + """
      local created = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM')
      local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
      if groups.err then return created end
      for _, info in ipairs(groups) do
        local group = asTable(info)
        if group['name'] == ARGV[1] then
          for _, info in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
            local consumer = asTable(info)
            if consumer['pending'] == 0 and consumer['idle'] > 3600000 then
              redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer['name'])
            end
          end
          local id = group['last-delivered-id']
          return {id, header(entry(KEYS[1], id))}
        end
      end
      return created
      """
  )

  /// KEYS: stream.
  ///
  /// ARGV: group, position, id of the message; no id if it is not known.
  ///
  /// A server that was restarted with old data can have another message at the position.
  static let acknowledge = RedisScript(
    "acknowledgements",
    entries + """
      local found = ARGV[3] ~= '' and entry(KEYS[1], ARGV[2])
      if found and not isSame(found, ARGV[3]) then \(superseded) end
      return redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
      """
  )

  /// KEYS: stream, stream of the dead letters.
  ///
  /// ARGV: group, position, id of the message, reason, limit, channel of the dead letters, consumer; no id and no consumer
  /// if they are not known.
  ///
  /// A message that another consumer has taken over is left to that one.
  static let reject = RedisScript(
    "dead letters",
    common + entries + """
      local found = entry(KEYS[1], ARGV[2])
      if found and ARGV[3] ~= '' and not isSame(found, ARGV[3]) then \(superseded) end
      local message = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)[1]
      if not message then return 0 end
      if ARGV[7] ~= '' and message[2] ~= ARGV[7] then
        return redis.error_reply('OVERTAKEN Another reader of the group has the message.')
      end
      if found then
        local fields = {}
        if #found[2] <= 2000 then
          for index = 1, #found[2], 2 do
            -- The dead letters themselves are complete.
            if found[2][index] ~= 'l' then
              fields[#fields + 1] = found[2][index]
              fields[#fields + 1] = found[2][index + 1]
            end
          end
        else
          -- A script can pass on a few thousand values only.
          fields = {'f', cmsgpack.pack(found[2])}
        end
        fields[#fields + 1] = 'r'
        fields[#fields + 1] = ARGV[4]
        local id = append(KEYS[2], redis.call('XLEN', KEYS[2]), '', false, fields)
        if type(id) == 'table' then return id end
        redis.call('XTRIM', KEYS[2], 'MAXLEN', '~', ARGV[5])
        announce(ARGV[6], id, field(found, 'h') or '', field(found, 'd') or '')
      end
      redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
      return 1
      """
  )

  // MARK: - Streams

  /// KEYS: stream.
  ///
  /// ARGV: position; that of the latest message if there is none.
  ///
  /// Returns the last position that the stream has had, and the header of the message at the position.
  static let survey = RedisScript(
    "reading of events",
    common + entries + """
      if redis.call('EXISTS', KEYS[1]) == 0 then return {'0-0', false} end
      local latest = last(KEYS[1])
      return {latest, header(entry(KEYS[1], ARGV[1] == '' and latest or ARGV[1]))}
      """
  )

  /// KEYS: stream.
  ///
  /// ARGV: position, number of bytes that a reply can have.
  ///
  /// Returns what ``survey`` does, and the id and the fields of the next message, and whether it is too large.
  static let resume = RedisScript(
    "reading of events",
    common + entries + sizes + """
      if redis.call('EXISTS', KEYS[1]) == 0 then return {'0-0', false} end
      local result = {last(KEYS[1]), header(entry(KEYS[1], ARGV[1]))}
      local next = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', 1)[1]
      if next then
        result[3] = {next[1], readable(next, ARGV[2]), size(next) > tonumber(ARGV[2]) and 1 or 0}
      end
      return result
      """
  )
}
