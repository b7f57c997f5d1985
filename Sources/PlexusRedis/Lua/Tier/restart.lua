free(KEYS[4])
current(ARGV[2], ARGV[3], ARGV[1])
if (string.match(schemas, '^%d+/([^: ]*)') or '') ~= ARGV[5] then return 0 end
local ranges = string.match(schemas, '^%d+[^: ]*(%S*)')
if ARGV[4] ~= '0' then
  local from, last = string.match(ranges, '^:(%d+)%-(%d+)')
  if latest == tonumber(last) then
    -- Without a token since the last restart, the data goes on from the same place.
    ranges = string.gsub(ranges, '^:%d+%-%d+', '')
  else
    from = string.format('%.0f', latest)
  end
  latest = math.min(latest - latest % block + ARGV[4] * block, math.ceil((latest + largest) / 2))
  local rangeCount, old = 1, ranges
  ranges = string.format(':%s-%.0f', from, latest)
  for range in string.gmatch(old, ':%d+%-%d+') do
    rangeCount = rangeCount + 1
    if rangeCount <= 16 then ranges = ranges .. range end
  end
  if rangeCount > 16 then ranges = string.gsub(ranges, ':%d+(%-%d+)$', ':0%1') end
  redis.call('SET', KEYS[2], string.format('%.0f', latest))
end
schemas = string.gsub(schemas, '^(%d+)%S*', '%1/' .. ARGV[1] .. ranges)
redis.call('SET', KEYS[3], schemas)
return 1
