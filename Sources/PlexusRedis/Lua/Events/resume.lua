if redis.call('EXISTS', KEYS[1]) == 0 then return {'0-0', false} end
local result = {last(KEYS[1]), header(entry(KEYS[1], ARGV[1]))}
local next = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', 1)[1]
if next then
  result[3] = {next[1], readable(next, ARGV[2]), size(next) > tonumber(ARGV[2]) and 1 or 0}
end
return result
