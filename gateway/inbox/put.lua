-- ARGV: P, seconds an event is remembered, seconds an alias is kept, how many messages; of each: conversation, event, lane .. '\n' ..
-- message; then their policies, one for as many in a row as share it: how many, debounce ms, longest debounce ms, tries allowed.
-- Returns per message 1 (kept) or 0 (seen before). All of a webhook or nothing.
-- An event is known under the name it was put under, wherever it goes.
local argv, now, call = ARGV, now_ms(), redis.call
local P, seen_for, kept_for, last = argv[1], argv[2], argv[3], 4 + 3 * argv[4]
local aliases, kept = {}, {}
for i = 5, last, 3 do aliases[#aliases + 1] = alias(argv[i]) end
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

local policy, alike, d, m, x = last - 3, 0
for i = 5, last, 3 do
  if alike == 0 then
    policy = policy + 4
    alike, d, m, x = tonumber(argv[policy]), tonumber(argv[policy + 1]), tonumber(argv[policy + 2]), tonumber(argv[policy + 3])
  end
  alike = alike - 1
  local conv, at = argv[i], #kept + 1
  if call('SET', 'cc:seen:{' .. conv .. '}:' .. argv[i + 1], '', 'NX', 'EX', seen_for) then
    if moved[at] then conv = home(conv, kept_for) end
    if call('RPUSH', queue(conv), argv[i + 2]) > 1 then -- else there is no hash: with an empty queue it goes, too
      mark_new()
      local f, p, h, w = unpack(call('HMGET', hash(conv), 'f', 'p', 'h', 'w'))
      local first = tonumber(f or call('ZSCORE', P .. ':ready:' .. tenant_of(conv), conv)) or now
      call('HSET', hash(conv), 'f', first, 'l', now, 'd', d, 'x', x)
      come(P, conv, d == 0 and now or math.min(now + d, first + m), now, false, p, h, w)
    elseif d == 0 or m == 0 then
      if x ~= TRIES then call('HSET', hash(conv), 'x', x) end -- the claim notes the rest
      local tenant = tenant_of(conv)
      local of = ready[tenant]
      if not of then
        of, tenants[#tenants + 1] = {}, tenant
        ready[tenant] = of
      end
      of[#of + 1], of[#of + 2] = now, conv
    else
      call('HSET', hash(conv), 'f', now, 'l', now, 'd', d, 'x', x)
      due[#due + 1], due[#due + 2] = now + math.min(d, m), conv
    end
    kept[at] = 1
  else
    kept[at] = 0
  end
end
mark_new()
return kept
