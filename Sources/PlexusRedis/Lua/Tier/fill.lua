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
