-- Sliding window: an exact log of charges, or with a precision a counter of sub-windows.
-- Twin of ratelimit-runtime/src/algorithm/sliding_window.rs: change both or neither.
--
-- key    a list b0 t0 b1 t1 … B: the timestamps t of entries in ascending order, each after the running total b of permits
--        charged before it; B is the total after the last, and of a paused key has the pause before it, and may be all. The
--        charges of a sub-window are one entry, stamped with the time of the first, which identifies it for refunds; the
--        sub-windows of the log are single microseconds
-- args   cost, limit, period, precision                        permits, permits, microseconds, microseconds or 0
-- reply  the permits counted, when the cost will fit or 0, the timestamp of the newest entry or 0
-- correct args: cost, negative for a debt; timestamp of the charged entry or nil, for a debt the most permits that may be counted;
--        period, precision
-- pause args: microseconds; period, precision

-- Running totals wrap here. The difference of two is exact, because it is less than that.
local WRAP = 2 ^ 50

-- The number of values per command: Lua's stack holds only some thousands.
local CHUNK = 1000

-- Returns the number that an element is. The last one may have a pause before it.
local function number_of(element)
  local after_pause = string.byte(element) == 112
    and (
      string.match(element, '^paused: %d+ %d+ %d+ (%d+)$')
      or string.match(element, '^penalized: %d+ %d+ %d+ %d+ [01] %d+ (%d+)$')
    )
  return parse_whole(after_pause or element)
end

local function number(key, index)
  return number_of(redis.call('LINDEX', key, index))
end

local function total(key, i)
  return number(key, 2 * i)
end

local function stamp(key, i)
  return number(key, 2 * i + 1)
end

-- Reads the pause, and returns the number of entries, negative if the key does not exist. Only a paused key has none.
local function entries(key)
  local length = redis.call('LLEN', key)
  unwrap(key, length > 0 and redis.call('LINDEX', key, -1))
  if length > 0 and (length % 2 == 0 or length == 1 and not pauses[key]) then corrupt() end
  return (length - 1) / 2
end

-- Sets the last element of a list.
local function set_total(key, total)
  redis.call('LSET', key, -1, wrap(key, int(total)))
end

-- Returns the start of the sub-window.
local function slot(time, precision)
  return precision == 0 and time or time - time % precision
end

-- Returns until when an entry of this time counts.
local function ends(time, period, precision)
  return slot(time, precision) + precision + period
end

-- Returns the first of the entries from `low` to `high` that passes, or `high`, where all after it pass too. The search
-- starts near `low`, where the entry usually is.
local function first(low, high, passes)
  local step, probe = 1, low
  while probe < high and not passes(probe) do
    low, probe, step = probe + 1, probe + step, step * 2
  end
  high = math.min(probe, high)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if passes(middle) then high = middle else low = middle + 1 end
  end
  return low
end

local function check(key, at)
  local cost, limit, period, precision =
    args[at], args[at + 1], args[at + 2], args[at + 3]
  local n = entries(key)
  local entry = {
    0, 0, 0, key = key, cost = cost, period = period, precision = precision, n = n, total = n < 0 and 0 or total(key, n),
    admits = cost == 0 or can_wait(now, 0) and cost <= limit,
  }
  if n <= 0 then return entry end

  entry.newest = stamp(key, n - 1)
  entry.live = first(0, n, function(i) return ends(stamp(key, i), period, precision) > now end)
  if entry.live == n then return entry end

  local here = slot(now, precision)
  if slot(entry.newest, precision) > here then
    entry.cut = first(0, n, function(i) return slot(stamp(key, i), precision) >= here end)
  end
  local function counted(i) return (entry.total - total(key, i)) % WRAP end
  entry[1], entry[3] = counted(entry.live), entry.newest
  entry.admits = entry.admits and (cost == 0 or entry[1] + cost <= limit)
  -- A cost of 0 reads when one of 1 will fit.
  local asked = math.max(cost, 1)
  if entry[1] + asked > limit and asked <= limit then
    local last = first(entry.live, n, function(i) return counted(i + 1) + asked <= limit end)
    entry[2] = ends(math.min(stamp(key, last), now), period, precision)
  end
  return entry
end

local function push(key, elements)
  for i = 1, #elements, CHUNK do
    redis.call('RPUSH', key, unpack(elements, i, math.min(i + CHUNK - 1, #elements)))
  end
end

-- Replaces all elements from an index on. Once elements are gone nothing may fail, so each command is tried before, in a way
-- that changes nothing, or nothing that the next command does not remove.
local function replace(key, index, tail)
  if #tail > 0 then
    redis.call('LTRIM', key, 0, -1)
    redis.call('RPUSH', key, '0')
  end
  redis.call('LTRIM', key, 0, index - 1)
  push(key, tail)
end

-- Lets the key expire with an entry of now.
local function expire_after(entry)
  entry.expires = ends(now, entry.period, entry.precision)
  entry.was = entry.newest and ends(entry.newest, entry.period, entry.precision)
  expire(entry.key, entry.expires, entry.was)
  entry.expiry_set = true
end

-- Merges all entries of this and later sub-windows into one with the current time.
local function repair(entry, total)
  local index = 2 * entry.cut + 1
  local tail = redis.call('LRANGE', entry.key, index, -1)
  expire_after(entry)
  replace(entry.key, index, {now, wrap(entry.key, int(total))})
  entry.tail = tail
end

local function drop_ended(entry)
  redis.call('LTRIM', entry.key, 2 * entry.live, -1)
end

-- Records in the entry what it did, for `restore`.
local function commit(entry)
  local after = (entry.total + entry.cost) % WRAP
  if entry.cut then
    repair(entry, after)
  else
    local key, last = entry.key, int(after)
    if entry.n < 0 then
      redis.call('RPUSH', key, 0, now, last)
      entry.created = true
    elseif not entry.newest or slot(entry.newest, entry.precision) < slot(now, entry.precision) then
      -- The pause stands before the last element.
      if pauses[key] then redis.call('LSET', key, -1, int(entry.total)) end
      entry.raised = pauses[key]
      redis.call('RPUSH', key, now, wrap(key, last))
      entry.pushed = true
    else
      set_total(key, after)
      entry.raised = true
    end
    expire_after(entry)
  end
  if entry.newest and entry.live > 0 then entry.clean_up = drop_ended end
end

--[[ decisions ]]
local function undo(entry)
  if entry.cut then return repair(entry, entry.total) end
  local pause = entry.pause
  if pause and pause.future and not entry.newest and lasts(pause) <= started then
    -- Nothing is left of a list without entries whose pause is over. Written, it would be gone, and could not be restored.
    pause.future = false
  elseif pause and pause.future then
    set_total(entry.key, entry.total)
    entry.raised, entry.expiry_set = true, true
    entry.was = entry.newest and ends(entry.newest, entry.period, entry.precision) or 0
    expire(entry.key, entry.was)
  end
end

--[[ all ]]
-- Removes what was pushed. If the user may not run `LTRIM`, rewrites the list, provided that it can get an expiry again.
local function pop(entry, expires)
  local key, last = entry.key, 2 * entry.n
  if not redis.pcall('LTRIM', key, 0, last).err then return end
  local elements = redis.call('LRANGE', key, 0, last)
  expire(key, expires)
  redis.call('DEL', key)
  push(key, elements)
  expire(key, expires)
end

local function restore(entry)
  local key, pause = entry.key, entry.pause
  local expires = pause and math.max(entry.was or 0, pause.over) or entry.was
  pauses[key] = nil
  if entry.created then
    return remove(key)
  elseif entry.tail then
    replace(key, 2 * entry.cut + 1, entry.tail)
  elseif entry.pushed then
    pop(entry, expires)
  end
  if entry.raised then redis.call('LSET', key, -1, (pause and pause.header or '') .. int(entry.total)) end
  if entry.expiry_set then expire(key, expires, not pause and entry.expires or nil) end
end

--[[ corrections ]]
-- Removes all charges of a key, but not its pause.
local function clear(key, sum, was)
  local pause = pauses[key]
  if not pause or lasts(pause) <= started then return remove(key) end
  expire(key, 0)
  local ok, err = pcall(set_total, key, sum)
  if ok then ok, err = pcall(redis.call, 'LTRIM', key, -1, -1) end
  if not ok then
    pauses[key] = nil
    redis.pcall('LSET', key, -1, pause.header .. int(sum))
    expire(key, math.max(was, pause.over))
    error(err)
  end
end

-- Charges a debt, which counts from now on. Returns whether it was cut.
local function debit(key, debt, most, period, precision)
  args = {debt, 0, period, precision}
  local entry = check(key, 1)
  entry.pause = pauses[key]
  entry.cost = math.min(debt, math.max(most - entry[1], 0))
  if entry.cost > 0 then
    local ok, err = pcall(commit, entry)
    if not ok then
      restore(entry)
      error(err)
    end
    -- The debt is made, even if what has ended has to stay.
    if entry.clean_up then pcall(entry.clean_up, entry) end
  end
  return entry.cost < debt
end

-- Without a charge, refunds the newest charges first.
local function correct(key, at)
  local cost, from, period, precision =
    args[at], args[at + 1], args[at + 2], args[at + 3]
  if cost < 0 then return debit(key, -cost, from, period, precision) end
  local n = entries(key)
  if n <= 0 then return end
  local sum, newest = total(key, n), stamp(key, n - 1)
  local live = first(0, n, function(i) return ends(stamp(key, i), period, precision) > now end)
  -- All totals from `lowered` on decrease by the cost, which leaves the entries after `kept` without charges.
  local kept, lowered, tail = n, n, {}
  local function left(i)
    return i < lowered and total(key, i) or (total(key, i) - cost) % WRAP
  end
  if from then
    local charged = first(live, n, function(i) return stamp(key, i) >= from end)
    if charged == n or stamp(key, charged) ~= from then return end
    cost = math.min(cost, (total(key, charged + 1) - total(key, charged)) % WRAP)
    if cost == 0 then return end
    lowered = charged + 1
    while kept > live and left(kept) == left(kept - 1) do kept = kept - 1 end
    if kept >= lowered then tail = redis.call('LRANGE', key, 2 * lowered, 2 * kept) end
    for i = 1, #tail, 2 do
      tail[i] = (number_of(tail[i]) - cost) % WRAP
    end
  else
    cost = math.min(cost, (sum - total(key, live)) % WRAP)
    if cost == 0 then return end
    kept = first(live, n, function(i) return (sum - total(key, i)) % WRAP <= cost end)
    lowered, tail = kept, {(sum - cost) % WRAP}
  end
  local was = ends(newest, period, precision)
  if kept == live then return clear(key, sum, was) end

  local expires, before = ends(stamp(key, kept - 1), period, precision), pauses[key]
  local index = #tail > 0 and 2 * lowered or 2 * kept + 1
  if before then
    -- Before the new last element.
    if #tail == 0 then index, tail = 2 * kept, {total(key, kept)} end
    tail[#tail] = wrap(key, int(tail[#tail]))
  end
  expire(key, expires, was)
  local ok, err = pcall(replace, key, index, tail)
  if not ok then
    pauses[key] = nil
    if before then expire(key, math.max(was, before.over)) else expire(key, was, expires) end
    error(err)
  end
end

-- Keeps its charges, and their times.
local function pause(key, at)
  local period, precision, n = args[at + 1], args[at + 2], entries(key)
  local before = pauses[key]
  if halt(key, args[at]) == 0 then return end
  if n >= 0 then
    local last, over = total(key, n), n > 0 and ends(stamp(key, n - 1), period, precision) or 0
    expire(key, over)
    local ok, err = pcall(set_total, key, last)
    if not ok then
      pauses[key] = nil
      expire(key, math.max(over, before and before.over or 0))
      error(err)
    end
    return
  end
  redis.call('RPUSH', key, wrap(key, '0'))
  local ok, err = pcall(expire, key, now)
  if not ok then
    pauses[key] = nil
    remove(key)
    error(err)
  end
end
