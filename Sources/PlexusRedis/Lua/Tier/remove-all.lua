free(KEYS[4])
local epoch = current(ARGV[2], ARGV[3], ARGV[1])
if ARGV[4] ~= '' and count(epoch) > tonumber(ARGV[4]) then
  -- A change for which replicas can be waited.
  nextToken()
else
  epoch = current(epoch, 0, ARGV[1], true)
end
return {epoch, latest}
