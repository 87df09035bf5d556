-- ARGV: P, seconds an event is remembered, seconds an alias is kept, then per message: conversation, event, debounce ms, longest debounce ms,
-- tries allowed, lane .. '\n' .. message. Returns per message 1 (kept) or 0 (seen before). All of a webhook or nothing.
-- An event is known under the name it was put under, wherever it goes.
local P, seen_for, kept_for, now, call = ARGV[1], ARGV[2], ARGV[3], now_ms(), redis.call
local since, aliases, kept = string.format('%.0f', now), {}, {}
for i = 4, #ARGV, 6 do aliases[#aliases + 1] = alias(ARGV[i]) end
local moved = call('MGET', unpack(aliases))

-- Conversations in which nothing waited have no mark yet, and are marked together: what is ready of each tenant, tenants
-- in the order of their first, and what is due, each with its time before it.
local tenants, ready, due = {}, {}, {}
local function mark_new()
  for _, tenant in ipairs(tenants) do
    local key = P .. ':ready:' .. tenant
    if call('ZADD', key, 'NX', unpack(ready[tenant])) == call('ZCARD', key) then call('RPUSH', P .. ':tenants', tenant) end
    ready[tenant] = nil
  end
  if #due > 0 then call('ZADD', P .. ':due', unpack(due)) end
  if #tenants > 0 or #due > 0 then wake(P) end
  tenants, due = {}, {}
end

for i = 4, #ARGV, 6 do
  local conv, d, m, x, at = ARGV[i], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 4], #kept + 1
  if call('SET', 'cc:seen:{' .. conv .. '}:' .. ARGV[i + 1], '1', 'NX', 'EX', seen_for) then
    if moved[at] then conv = home(conv, kept_for) end
    local c, fresh = hash(conv), false
    if call('RPUSH', queue(conv), ARGV[i + 5]) == 1 then -- with an empty queue its hash goes, too; that there is none, it tells
      if d == 0 then
        fresh = call('HSET', c, 'f', since, 'x', x) == 2
      else
        fresh = call('HSET', c, 'f', since, 'l', since, 'd', d, 'x', x) == 4
      end
    end
    if not fresh then
      mark_new()
      local f, p, h, w = unpack(call('HMGET', c, 'f', 'p', 'h', 'w'))
      local first = tonumber(f) or now
      call('HSET', c, 'f', first, 'l', now, 'd', d, 'x', x)
      come(P, conv, d == 0 and now or math.min(now + d, first + m), now, not f, p, h, w)
    elseif d == 0 or m == 0 then
      local tenant = tenant_of(conv)
      local of = ready[tenant]
      if not of then
        of, tenants[#tenants + 1] = {}, tenant
        ready[tenant] = of
      end
      of[#of + 1], of[#of + 2] = since, conv
    else
      due[#due + 1], due[#due + 2] = now + math.min(d, m), conv
    end
    kept[at] = 1
  else
    kept[at] = 0
  end
end
mark_new()
return kept
