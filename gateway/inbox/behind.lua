-- ARGV: conversation, token, how many. The messages that wait behind the holder's batch, oldest first; false: lost.
local c = hash(ARGV[1])
local h, n = unpack(redis.call('HMGET', c, 'h', 'n'))
if h ~= ARGV[2] then return false end
local messages = {}
for _, entry in ipairs(redis.call('LRANGE', queue(ARGV[1]), tonumber(n), tonumber(n) + tonumber(ARGV[3]) - 1)) do
  messages[#messages + 1] = string.match(entry, '\n(.*)$')
end
return messages
