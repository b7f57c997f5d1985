run('ZREM', KEYS[2], ARGV[1])
run('HDEL', KEYS[1], ARGV[1])
return 1
