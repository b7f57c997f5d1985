for index = 4, #KEYS, 3 do
  redis.call('DEL', KEYS[index + 1], KEYS[index + 2])
  if redis.call('DEL', KEYS[index]) == 0 then touch(KEYS[index]) end
end
local epoch = current(ARGV[2], ARGV[3], ARGV[1])
if misses(ARGV[4]) then return schemas end
return {epoch, nextToken()}
