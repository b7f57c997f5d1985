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
