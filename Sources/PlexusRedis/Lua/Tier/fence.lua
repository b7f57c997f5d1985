free(KEYS[4])
local epoch = current(ARGV[2], ARGV[3], ARGV[1])
local token = nextToken()
publish(KEYS[5], token)
return {epoch, token}
