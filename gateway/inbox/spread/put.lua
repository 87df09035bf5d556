-- ARGV: conversation, shard, seconds an event is remembered, seconds an alias is kept, then per message: event, debounce ms,
-- longest debounce ms, tries allowed, lane .. '\n' .. message. Returns {shard, ms until it is to be looked at or -1, where
-- it belongs by now or '', per message 1 (kept), 0 (seen before) or 2 (to be put there)}.
local conv, c, now = ARGV[1], hash(ARGV[1]), now_ms()
local to, kept, came = redis.call('GET', alias(conv)), {}, false
if to then redis.call('EXPIRE', alias(conv), ARGV[4]) end
for i = 5, #ARGV, 5 do
  local seen, d = 'cc:seen:{' .. conv .. '}:' .. ARGV[i], tonumber(ARGV[i + 1])
  local state = 0
  if to then
    if redis.call('EXISTS', seen) == 0 then state = 2 end
  elseif redis.call('SET', seen, 1, 'NX', 'EX', ARGV[3]) then
    redis.call('RPUSH', queue(conv), ARGV[i + 4])
    local f = redis.call('HGET', c, 'f') or now
    redis.call('HSET', c, 'f', f, 'l', now, 'd', d, 'm', ARGV[i + 2], 'x', ARGV[i + 3])
    redis.call('HSETNX', c, 's', ARGV[2])
    state = 1
  end
  kept[#kept + 1] = state
end
-- What was seen before is looked at too: whoever put it may have ended before it was marked.
local wait = held_since(c, now) and -1 or look_in(conv, now)
return {tonumber(redis.call('HGET', c, 's') or ARGV[2]), wait, to or '', unpack(kept)}
