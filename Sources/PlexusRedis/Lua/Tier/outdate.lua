for index = 5, #KEYS, 2 do redis.call('DEL', KEYS[index]) end
local epoch = current(ARGV[2], ARGV[3], ARGV[1])
if misses(ARGV[4]) then return schemas end
local token = nextToken()
for index = 4, #KEYS, 2 do
  if run('HGET', KEYS[index], 'v') then
    redis.call('HSET', KEYS[index], 'o', token)
  else
    touch(KEYS[index])
  end
end
return {epoch, token}
