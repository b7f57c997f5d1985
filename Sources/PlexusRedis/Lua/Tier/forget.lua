for index = 1, #ARGV, 2 do
  local node, beat = ARGV[index], ARGV[index + 1]
  if string.match(run('HGET', KEYS[1], node) or '', '^%S*') == beat then
    if node == '' then
      run('HSET', KEYS[1], '', '0')
    else
      run('ZREM', KEYS[2], node)
      run('HDEL', KEYS[1], node)
    end
  end
end
return 1
