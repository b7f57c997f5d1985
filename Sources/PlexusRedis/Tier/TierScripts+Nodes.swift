extension TierScripts {
  // MARK: - Restarts

  /// KEYS: epoch, tokens, schemas, acknowledgements.
  ///
  /// ARGV: nonce, known epoch and token, the number of blocks to skip, the name of the run that was noted last, or nothing.
  ///
  /// A server that has restarted may have lost tokens that nodes know. It skips them, so that they are not given to other
  /// nodes, and notes which ones. Of many restarts without a new epoch, the oldest ones are not told apart. The nonce is
  /// the name of the run that begins.
  ///
  /// Returns whether this was done: another process can have noted the run since the name of the last one was read.
  static let restart = RedisScript(
    "notes of a restart",
    common + """
      free(KEYS[4])
      current(ARGV[2], ARGV[3], ARGV[1])
      if (string.match(schemas, '^%d+/([^: ]*)') or '') ~= ARGV[5] then return 0 end
      local ranges = string.match(schemas, '^%d+[^: ]*(%S*)')
      if ARGV[4] ~= '0' then
        local from, last = string.match(ranges, '^:(%d+)%-(%d+)')
        if latest == tonumber(last) then
          -- Without a token since the last restart, the data goes on from the same place.
          ranges = string.gsub(ranges, '^:%d+%-%d+', '')
        else
          from = string.format('%.0f', latest)
        end
        latest = math.min(latest - latest % block + ARGV[4] * block, math.ceil((latest + largest) / 2))
        local rangeCount, old = 1, ranges
        ranges = string.format(':%s-%.0f', from, latest)
        for range in string.gmatch(old, ':%d+%-%d+') do
          rangeCount = rangeCount + 1
          if rangeCount <= 16 then ranges = ranges .. range end
        end
        if rangeCount > 16 then ranges = string.gsub(ranges, ':%d+(%-%d+)$', ':0%1') end
        redis.call('SET', KEYS[2], string.format('%.0f', latest))
      end
      schemas = string.gsub(schemas, '^(%d+)%S*', '%1/' .. ARGV[1] .. ranges)
      redis.call('SET', KEYS[3], schemas)
      return 1
      """
  )

  // MARK: - Nodes

  /// KEYS: epoch, tokens, schemas, acknowledgements, fence.
  ///
  /// ARGV: nonce, known epoch and token.
  ///
  /// Every node ends the trust in its copies, which stay valid.
  static let fence = RedisScript(
    "clears",
    common + """
      free(KEYS[4])
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      local token = nextToken()
      publish(KEYS[5], token)
      return {epoch, token}
      """
  )

  /// KEYS: epoch, tokens, schemas, acknowledgements, nodes, fence.
  ///
  /// ARGV: nonce, known epoch and token, node, ms of trust, the epoch and fence that it acknowledges or nothing.
  ///
  /// Returns the epoch, the fence, the name of the last loss of registrations, the longest trust of a node, and the last
  /// token: a node that hears of a removal knows of it afterwards.
  static let beat = RedisScript(
    "heartbeats",
    common + """
      free(KEYS[4])
      local epoch = current(ARGV[2], ARGV[3], ARGV[1])
      local longest = number(string.match(schemas, '^%d+'), 1e15)
      local loss = lastLoss(KEYS[5], KEYS[4], KEYS[6], longest == 0, ARGV[1])
      if longest < tonumber(ARGV[5]) then
        longest = ARGV[5]
        redis.call('SET', KEYS[3], (string.gsub(schemas, '^%d+', longest)))
      end
      local fence = lastFence(KEYS[6])
      -- At the end: a change of these keys ends their tracking, which nodes need only while they wait for others.
      redis.call('ZADD', KEYS[5], ARGV[5], ARGV[4])
      redis.call('HSET', KEYS[4], ARGV[4], ARGV[1] .. ' ' .. ARGV[6])
      -- The last number that was skipped is no token: the next restart can skip it as well.
      local from, last = string.match(schemas, '^[^: ]*:(%d+)%-(%d+)')
      return {epoch, fence, loss, longest, latest == tonumber(last) and from or latest}
      """
  )

  /// KEYS: acknowledgements, nodes, fence.
  ///
  /// ARGV: nonce, epoch and fence.
  ///
  /// A fence that was lost is set again. Returns the name of the last loss of registrations, then for each node that has not
  /// acknowledged the epoch and the fence its name, ms of its trust, and the nonce of its last heartbeat. No time of the
  /// engine is involved: its clock can be set.
  static let laggards = RedisScript(
    "clears",
    common + """
      free(KEYS[1])
      local report = {lastLoss(KEYS[2], KEYS[1], KEYS[3], false, ARGV[1])}
      if lastFence(KEYS[3]) < tonumber(ARGV[3]) then publish(KEYS[3], ARGV[3]) end
      local nodes = run('ZRANGEBYSCORE', KEYS[2], 0, '+inf', 'WITHSCORES')
      local beats, fields = {}, run('HGETALL', KEYS[1])
      for index = 1, #fields, 2 do beats[fields[index]] = fields[index + 1] end
      for index = 1, #nodes, 2 do
        local beat = beats[nodes[index]] or ''
        local epoch, fence = string.match(beat, ' ([^ ]+) (%d+)$')
        local hasPassed = epoch
          and (count(epoch) > count(ARGV[2]) or epoch == ARGV[2] and tonumber(fence) >= tonumber(ARGV[3]))
        if not hasPassed then
          report[#report + 1] = nodes[index]
          report[#report + 1] = number(nodes[index + 1], 1e15) or 0
          report[#report + 1] = string.match(beat, '^%S*')
        end
      end
      return report
      """
  )

  /// KEYS: acknowledgements, nodes.
  ///
  /// ARGV: the names of nodes, each with the nonce of its last heartbeat.
  ///
  /// Removes the registrations of nodes without a later heartbeat. The node without a name is the last loss of
  /// registrations.
  static let forget = RedisScript(
    "the end of registrations",
    common + """
      for index = 1, #ARGV, 2 do
        local node, beat = ARGV[index], ARGV[index + 1]
        if string.match(run('HGET', KEYS[1], node) or '', '^%S*') == beat then
          if node == '' then
            run('HSET', KEYS[1], '', '0')
          else
            run('ZREM', KEYS[2], node)
            run('HDEL', KEYS[1], node)
          end
        end
      end
      return 1
      """
  )

  /// KEYS: acknowledgements, nodes.
  ///
  /// ARGV: node.
  static let leave = RedisScript(
    "the end of registrations",
    common + """
      run('ZREM', KEYS[2], ARGV[1])
      run('HDEL', KEYS[1], ARGV[1])
      return 1
      """
  )
}
