if redis.pcall('XPENDING', KEYS[1], ARGV[1]).err then return 0 end
local count = release(KEYS[1], ARGV[1], ARGV[2], ARGV[4], ARGV[3], 0)
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) == 0 then
  redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
end
if count > 0 then wake(KEYS[2], ARGV[2]) end
return count
