local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2])
local message = not pending.err and pending[1]
local found = message and entry(KEYS[1], ARGV[3])
if not found or not isSame(found, ARGV[4]) then return 0 end
return free(KEYS[1], ARGV[1], ARGV[3], message[4] + 1, 0)
