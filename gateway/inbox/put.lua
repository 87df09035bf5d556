-- ARGV: P, seconds an event is remembered, seconds an alias is kept, then per message: conversation, event, debounce ms, longest debounce ms,
-- tries allowed, lane .. '\n' .. message. Returns per message 1 (kept) or 0 (seen before). All of a webhook or nothing.
-- An event is known under the name it was put under, wherever it goes.
local P, seen_for, kept_for, now = ARGV[1], ARGV[2], ARGV[3], now_ms()
local kept = {}
for i = 4, #ARGV, 6 do
  local conv, event, d, m, x, entry = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 4], ARGV[i + 5]
  if redis.call('SET', 'cc:seen:{' .. conv .. '}:' .. event, 1, 'NX', 'EX', seen_for) then
    conv = home(conv, kept_for)
    local c = hash(conv)
    redis.call('RPUSH', queue(conv), entry)
    local f, p, h, w = unpack(redis.call('HMGET', c, 'f', 'p', 'h', 'w'))
    local first = tonumber(f) or now
    redis.call('HSET', c, 'f', first, 'l', now, 'd', d, 'm', m, 'x', x)
    come(P, conv, d == 0 and now or math.min(now + d, first + m), now, not f, p, h, w)
    kept[#kept + 1] = 1
  else
    kept[#kept + 1] = 0
  end
end
return kept
