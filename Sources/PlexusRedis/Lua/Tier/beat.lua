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
