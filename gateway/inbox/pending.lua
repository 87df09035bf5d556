-- ARGV: P, how many at most. The conversations that wait or are in hand; false when there are more.
local P, keys, count, found = ARGV[1], {ARGV[1] .. ':due', ARGV[1] .. ':lease'}, 0, {}
for _, tenant in ipairs(redis.call('LRANGE', P .. ':tenants', 0, -1)) do keys[#keys + 1] = P .. ':ready:' .. tenant end
for _, key in ipairs(keys) do count = count + redis.call('ZCARD', key) end
if count > tonumber(ARGV[2]) then return false end
for _, key in ipairs(keys) do
  for _, conv in ipairs(redis.call('ZRANGE', key, 0, -1)) do found[#found + 1] = conv end
end
return found
