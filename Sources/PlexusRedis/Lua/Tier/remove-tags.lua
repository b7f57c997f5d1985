for index = 4, #KEYS do redis.call('DEL', KEYS[index]) end
local epoch = current(ARGV[2], ARGV[3], ARGV[1])
return {epoch, nextToken()}
