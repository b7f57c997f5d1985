local released = 0
local till = string.format('%.0f', now() + ARGV[3])
for index = 0, #KEYS / 2 - 1 do
  local leaseKey, fetchKey = KEYS[1 + 2 * index], KEYS[2 + 2 * index]
  local epoch, token = ARGV[4 + 2 * index], ARGV[5 + 2 * index]
  local holds = run('GET', leaseKey) == string.format('%s %s:%s', epoch, ARGV[1], token)
  -- The failure comes before the end of the lease, which wakes the nodes that wait. A server without memory
  -- takes no failure: one of these nodes fetches.
  if holds and ARGV[2] ~= '' then pcall(run, 'HSET', fetchKey, 'v', token, 'd', ARGV[2], 'x', till) end
  forget(fetchKey, token)
  if holds then
    redis.call('PEXPIRE', fetchKey, ARGV[3])
    redis.call('DEL', leaseKey)
    released = released + 1
  end
end
return released
