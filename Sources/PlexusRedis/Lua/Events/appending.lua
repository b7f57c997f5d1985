local function milliseconds()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
-- The id of the last entry that a stream has had.
local function last(key) return asTable(redis.call('XINFO', 'STREAM', key))['last-generated-id'] end
local function epoch(id) return string.match(id, '^%d+') end
-- A higher epoch. Another program can choose one for which the numbers of scripts are not exact.
local function after(epoch)
  local number = tonumber(epoch) or 0
  return number + (number < 2 ^ 53 and 1 or 4096)
end
-- Appends an entry with the next number. A stream that was lost, or that is older than the node knows, gets
-- a new epoch that is higher than all before, whose first entry reports the loss.
local function append(key, length, known, isBehind, fields)
  local function add(epoch) return redis.pcall('XADD', key, epoch .. '-*', unpack(fields)) end
  local function fresh()
    local latest = redis.call('EXISTS', key) == 1 and epoch(last(key)) or 0
    if known ~= '' then
      fields[#fields + 1] = 'l'
      fields[#fields + 1] = '1'
    end
    return string.format('%.0f', math.max(milliseconds(), after(known), after(latest)))
  end
  local id
  if length == 0 or isBehind then
    id = add(fresh())
  elseif known == '' then
    id = add(epoch(last(key)))
  else
    id = add(known)
    if type(id) == 'string' and string.match(id, '-(%d+)$') == '0' then
      redis.call('XDEL', key, id)
      id = add(fresh())
    end
  end
  -- Another program has appended an entry with a higher id.
  if type(id) == 'table' and redis.call('EXISTS', key) == 1 then id = add(epoch(last(key))) end
  return id
end
-- Without the permission for the channel, it returns an error.
local function announce(channel, id, header, body)
  return redis.pcall('PUBLISH', channel, table.concat({id, '\n', #header, '\n', header, body}))
end
