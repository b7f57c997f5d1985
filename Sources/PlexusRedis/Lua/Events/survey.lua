if redis.call('EXISTS', KEYS[1]) == 0 then return {'0-0', false} end
local latest = last(KEYS[1])
return {latest, header(entry(KEYS[1], ARGV[1] == '' and latest or ARGV[1]))}
