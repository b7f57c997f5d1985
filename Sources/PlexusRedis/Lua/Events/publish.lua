local own, earlier = unpack(redis.call('HMGET', KEYS[2], ARGV[2], ARGV[6]))
if own then
  local number, first, refused = string.match(own, '^(%d+) (%S+)(.*)$')
  if number == ARGV[1] then
    local reply = {first}
    for index in string.gmatch(refused, '%d+') do
      reply[#reply + 1] = {tonumber(index), redis.error_reply('REFUSED The engine has refused the message before.')}
    end
    return reply
  end
  if tonumber(number) > tonumber(ARGV[1]) then
    return redis.error_reply('FORGOTTEN The engine no longer knows whether it has the message.')
  end
end
-- A server that was restarted with old data lacks the latest messages of the node.
local isBehind = false
if ARGV[6] ~= '' then
  local number, first = string.match(earlier or '', '^(%d+) (%S+)')
  isBehind = not number or tonumber(number) < tonumber(ARGV[7])
    or (number == ARGV[7] and first ~= ARGV[8])
end
local limit = tonumber(ARGV[4])
local length = redis.call('XLEN', KEYS[1])
local count = (#ARGV - 10) / 2
local full
if length + count > limit + limit / 10 then
  local function before(a, b)
    local a1, a2 = string.match(a, '(%d+)-(%d+)')
    local b1, b2 = string.match(b, '(%d+)-(%d+)')
    if a1 ~= b1 then return tonumber(a1) < tonumber(b1) end
    return tonumber(a2) < tonumber(b2)
  end
  local needed, slowest
  for _, info in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    local group = asTable(info)
    local oldest = group['last-delivered-id']
    if group['pending'] > 0 then
      oldest = redis.call('XPENDING', KEYS[1], group['name'])[2]
    end
    if not needed or before(oldest, needed) then needed, slowest = oldest, group['name'] end
  end
  if needed then
    redis.call('XTRIM', KEYS[1], 'MINID', '~', needed, 'LIMIT', length - limit)
  else
    redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', limit)
  end
  full = redis.error_reply('FULL The group ' .. (slowest or '') .. ' is '
    .. length .. ' messages behind. Handle them, or remove the group by XGROUP DESTROY.')
  length = redis.call('XLEN', KEYS[1])
  if ARGV[10] == '1' and length + count > 2 * limit then
    redis.call('XTRIM', KEYS[1], 'MAXLEN', math.max(limit, math.floor(limit * 1.9) - count))
    length = redis.call('XLEN', KEYS[1])
  end
end
local reply, refused, ids, following = {false}, '', {}, nil
for index = 1, count do
  local header, body = ARGV[9 + 2 * index], ARGV[10 + 2 * index]
  local id
  if length >= 2 * limit then
    id = full
  elseif following then
    id = redis.pcall('XADD', KEYS[1], following, 'h', header, 'd', body)
  else
    id = append(KEYS[1], length, ARGV[3], isBehind, {'h', header, 'd', body})
    if type(id) == 'string' then reply[1], following = id, epoch(id) .. '-*' end
  end
  if type(id) == 'string' then
    length = length + 1
    ids[index] = id
  else
    refused = refused .. ' ' .. index
    reply[#reply + 1] = {index, id}
  end
end
if not following then return reply end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[1] .. ' ' .. reply[1] .. refused)
redis.call('PEXPIRE', KEYS[2], ARGV[9])
for index = 1, count do
  if ids[index] then
    local heard = announce(ARGV[5], ids[index], ARGV[9 + 2 * index], ARGV[10 + 2 * index])
    if type(heard) == 'table' then reply[#reply + 1] = {0, heard} end
    -- If nothing receives the first one, nothing receives the others.
    if type(heard) == 'table' or heard == 0 then break end
  end
end
return reply
