-- ARGV: P, seconds an event is remembered, then per message: conversation, event, debounce ms, longest debounce ms,
-- tries allowed, lane .. '\n' .. message. Returns per message 1 (kept) or 0 (seen before). All of a webhook or nothing.
local P, seen_for, now = ARGV[1], ARGV[2], now_ms()
local kept = {}
for i = 3, #ARGV, 6 do
  local conv, event, d, m, x, entry = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 4], ARGV[i + 5]
  local c, q = hash(conv), queue(conv)
  if redis.call('SET', 'cc:seen:{' .. conv .. '}:' .. event, 1, 'NX', 'EX', seen_for) then
    redis.call('RPUSH', q, entry)
    local f, p, h, w = unpack(redis.call('HMGET', c, 'f', 'p', 'h', 'w'))
    f = tonumber(f) or now
    redis.call('HSET', c, 'f', f, 'l', now, 'd', d, 'm', m, 'x', x)
    -- A try that failed waits out its pause, unless it waits for just this; a holder looks again when it is done.
    if not h and not (p and tonumber(p) > now and not w) then
      mark(P, conv, d == 0 and now or math.min(now + d, f + m), now)
    end
    kept[#kept + 1] = 1
  else
    kept[#kept + 1] = 0
  end
end
return kept
