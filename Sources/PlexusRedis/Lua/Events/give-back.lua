local count = 0
for index = 4, #ARGV do
  local id = ARGV[index]
  local message = redis.call('XPENDING', KEYS[1], ARGV[1], id, id, 1, ARGV[2])[1]
  if message then count = count + free(KEYS[1], ARGV[1], id, message[4], ARGV[3]) end
end
if count > 0 then wake(KEYS[2], ARGV[2]) end
return count
