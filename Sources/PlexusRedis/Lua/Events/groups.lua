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
