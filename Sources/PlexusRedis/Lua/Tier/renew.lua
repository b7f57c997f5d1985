free(KEYS[2])
local time = now()
local lost = {}
for index = 1, #KEYS / 2 do
  local leaseKey, fetchKey = KEYS[2 * index - 1], KEYS[2 * index]
  local epoch, token = ARGV[1 + 2 * index], ARGV[2 + 2 * index]
  if run('GET', leaseKey) == string.format('%s %s:%s', epoch, ARGV[1], token) then
    local renewal = math.max(time + ARGV[2], lastRenewal(fetchKey, token) + 1)
    run('HSET', fetchKey, 'l', token, 'u', string.format('%.0f', renewal))
    redis.call('PEXPIRE', fetchKey, hold)
    if redis.call('PTTL', leaseKey) < hold / 2 then
      redis.call('PEXPIRE', leaseKey, hold + ARGV[2])
    end
  else
    forget(fetchKey, token)
    lost[#lost + 1] = index
  end
end
return lost
