-- The entry at a position, if the stream still has it.
local function entry(key, id) return redis.call('XRANGE', key, id, id)[1] end
local function field(entry, name)
  local value
  for index = 1, #entry[2], 2 do
    if entry[2][index] == name then value = entry[2][index + 1] end
  end
  return value
end
-- The header of an entry, by which it is compared.
local function header(entry)
  if not entry then return false end
  local header = field(entry, 'h') or ''
  return #header <= 65536 and {'h', header} or {}
end
-- Whether an entry is the message with an id. One of another program has its position for an id.
local function isSame(entry, id)
  local header = field(entry, 'h') or ''
  if string.sub(header, 1, #id + 1) == id .. '\n' then return true end
  local version = #header <= 65536 and string.match(header, '^[^\n]*\n%-?(%d+)\n[^\n]*\n')
  return id == entry[1] and (not version or #version > 18)
end
