local epoch = current(ARGV[2], ARGV[3], ARGV[1])
local time = now()
local findings = {epoch, ARGV[1], time}
local keyCount = tonumber(ARGV[5])
local firstTag = 3 + 3 * keyCount
-- Whether something with a token is newer than the last removals by its tags.
local function isValid(token, tags)
  if tags == '' then return true end
  for number in string.gmatch(tags, '%d+') do
    local removal = mark(KEYS[firstTag + number], epoch)
    if not removal or removal >= tonumber(token) then return false end
  end
  return true
end
for index = 0, keyCount - 1 do
  local entryKey, leaseKey, fetchKey = KEYS[4 + 3 * index], KEYS[5 + 3 * index], KEYS[6 + 3 * index]
  local takesLease, oldEpoch, oldToken, awaited, over, tags = ARGV[9 + index], '', 0, 0, '', ''
  if #takesLease > 1 then
    takesLease, oldEpoch, oldToken, awaited, over, tags =
      string.match(takesLease, '^(%d) (%S*) (%d+) (%d+) (%d+:%d+) (.*)$')
    oldToken, awaited = tonumber(oldToken), tonumber(awaited)
  end
  local e = run('HMGET', entryKey, 'e', 'v', 't', 'd', 'o')
  local token, payload, outdated = e[2], e[4], e[5]
  local stored = number(token, latest) and number(e[3], 1e15)
  local isThere = e[1] == epoch and payload and stored and isValid(token, tags)
  local age = isThere and string.format('%.0f', math.max(0, time - stored))
  if isThere and (not outdated or (number(outdated, 2 ^ 63) or latest) < tonumber(token))
    and (oldEpoch ~= epoch or tonumber(token) > oldToken) then
    findings[#findings + 1] = token .. ' ' .. age .. ' ' .. payload
  else
    local previous = isThere and {token, age, payload}
    local lease = run('GET', leaseKey)
    local token = lease and string.match(lease, ':(%d+)$')
    if not token or string.match(lease, '^[^ ]+') ~= epoch or not isValid(token, tags) then lease = false end
    local renewal = lease and lastRenewal(fetchKey, token)
    -- Only a node that has measured the length of a lease by its own clock ends it.
    if lease and over == string.format('%s:%.0f', token, renewal) then lease = false end
    local failure = awaited > 0 and run('HMGET', fetchKey, 'v', 'd', 'x')
    if failure and (number(failure[1], latest) or 0) >= awaited
      and (number(failure[3], 1e15) or time) >= time then
      findings[#findings + 1] = {'failed', failure[2]}
    elseif lease then
      local length = number(string.match(lease, '/(%d+):%d+$'), hold)
      local rest = length and (renewal > 0 and renewal - time or redis.call('PTTL', leaseKey) - hold)
      length = length or tonumber(ARGV[7])
      findings[#findings + 1] = {'busy', token, length, previous, renewal, rest or length}
    elseif takesLease == '1' then
      for number in string.gmatch(tags, '%d+') do
        use(KEYS[firstTag + number], epoch, ARGV[8])
      end
      token = nextToken()
      enroll(ARGV[4], time, hold + ARGV[8])
      redis.call('SET', leaseKey, string.format('%s %s:%.0f', epoch, ARGV[6], token), 'PX', hold + ARGV[7])
      findings[#findings + 1] = {'granted', token, previous}
    else
      findings[#findings + 1] = {'nothing', previous}
    end
  end
end
return findings
