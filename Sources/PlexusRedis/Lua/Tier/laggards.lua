free(KEYS[1])
local report = {lastLoss(KEYS[2], KEYS[1], KEYS[3], false, ARGV[1])}
if lastFence(KEYS[3]) < tonumber(ARGV[3]) then publish(KEYS[3], ARGV[3]) end
local nodes = run('ZRANGEBYSCORE', KEYS[2], 0, '+inf', 'WITHSCORES')
local beats, fields = {}, run('HGETALL', KEYS[1])
for index = 1, #fields, 2 do beats[fields[index]] = fields[index + 1] end
for index = 1, #nodes, 2 do
  local beat = beats[nodes[index]] or ''
  local epoch, fence = string.match(beat, ' ([^ ]+) (%d+)$')
  local hasPassed = epoch
    and (count(epoch) > count(ARGV[2]) or epoch == ARGV[2] and tonumber(fence) >= tonumber(ARGV[3]))
  if not hasPassed then
    report[#report + 1] = nodes[index]
    report[#report + 1] = number(nodes[index + 1], 1e15) or 0
    report[#report + 1] = string.match(beat, '^%S*')
  end
end
return report
