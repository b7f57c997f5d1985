local epoch = current(ARGV[2], ARGV[3], ARGV[1])
if ARGV[6] ~= '' and count(epoch) ~= tonumber(ARGV[6]) then return {epoch} end
if misses(ARGV[4]) then return schemas end
local time = now()
local tokens = {epoch}
local width, keyCount = 2 * ARGV[5], tonumber(ARGV[7])
local firstTag = 3 + width * keyCount
-- Whether an entry comes from an earlier store by the same cache, or from the same one, whose reply was lost.
local function isOwn(id, other)
  local cache, value = string.match(id or '', '^(%w+) (%d+)$')
  local otherCache, otherValue = string.match(other, '^(%w+) (%d+)$')
  return cache and cache == otherCache and tonumber(value) <= tonumber(otherValue)
end
-- Whether a key can have changed since a token, other than by its own cache. One without an entry can have been
-- removed.
local function hasChanged(entryKey, token, tags, id)
  local e = run('HMGET', entryKey, 'e', 'v', 'o', 'i')
  local version = number(e[2], latest)
  if e[1] ~= epoch or not version then return true end
  if isOwn(e[4], id) then token = math.max(token, version) end
  if version > token then return true end
  if e[3] and (number(e[3], latest) or largest) > token then return true end
  for number in string.gmatch(tags, '%d+') do
    if (mark(KEYS[firstTag + number], epoch) or largest) > token then return true end
  end
  return false
end
local function store(first, payload, span, tags, id)
  local entryKey, leaseKey = KEYS[first], KEYS[first + 1]
  for number in string.gmatch(tags, '%d+') do use(KEYS[firstTag + number], epoch, span) end
  local token = nextToken()
  enroll(string.match(ARGV[4], '%S+'), time, span)
  redis.call('DEL', entryKey, leaseKey)
  redis.call('HSET', entryKey, 'e', epoch, 'v', token, 't', time, 'd', payload, 'i', id)
  redis.call('PEXPIRE', entryKey, span)
  -- As in a fill: this node has a copy, and has to hear of changes.
  redis.call('HGET', entryKey, 'v')
  for other = first + 2, first + width - 2, 2 do
    redis.call('DEL', KEYS[other + 1])
    if run('HGET', KEYS[other], 'v') then redis.call('HSET', KEYS[other], 'o', token) end
  end
  return token
end
for index = 0, keyCount - 1 do
  local first, values = 4 + width * index, 8 + 5 * index
  local tags, token, id = ARGV[values + 2], tonumber(ARGV[values + 3]), ARGV[values + 4]
  tokens[#tokens + 1] = token and hasChanged(KEYS[first], token, tags, id) and 0
    or store(first, ARGV[values], ARGV[values + 1], tags, id)
end
return tokens
