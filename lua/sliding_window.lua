-- Sliding window: an exact log of charges, or with a precision a counter of sub-windows.
-- Twin of ratelimit-runtime/src/algorithm/sliding_window.rs: change both or neither.
--
-- key    a list b0 t0 b1 t1 … B: the stamps t of charges in rising order, between running totals b of the permits
--        charged before them, B after the last. A charge counts until its stamp + period; charges of one stamp are one
--        entry. The log stamps a charge with its time, the counter with the end of its sub-window.
-- args   cost, limit, period, precision                        permits, permits, microseconds, microseconds or 0
-- reply  permits counted, when so many have ended that the cost fits or 0, when the newest ends or 0
-- refund args: cost, stamp of the charge or '', period
local width = 4

-- Running totals wrap here. A difference of two is exact, as it never exceeds the limit.
local WRAP = 2 ^ 50

local function stamp_at(precision)
  if precision == 0 then return now end
  return now - now % precision + precision
end

local function number(key, index)
  return tonumber(redis.call('LINDEX', key, int(index)) or nil) or corrupt()
end

local function total(key, i)
  return number(key, 2 * i)
end

local function stamp(key, i)
  return number(key, 2 * i + 1)
end

local function entries(key)
  local length = redis.call('LLEN', key)
  if length > 0 and (length < 3 or length % 2 == 0) then corrupt() end
  return (length - 1) / 2
end

-- The first of the entries from `low` to `high` that passes, else `high`. Looks near `low` first: there it mostly is.
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
    tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local n = entries(key)
  local top = stamp_at(precision)
  local entry = {0, 0, 0, key = key, cost = cost, period = period, top = top, admits = cost <= limit, total = 0}
  if n < 0 then return entry end

  entry.n, entry.newest, entry.total = n, stamp(key, n - 1), total(key, n)
  entry.live = first(0, n, function(i) return stamp(key, i) + period > now end)
  if entry.live == n then return entry end

  local function counted(i) return (entry.total - total(key, i)) % WRAP end
  entry[1] = counted(entry.live)
  entry[3] = math.min(entry.newest, top) + period
  entry.admits = cost == 0 or entry[1] + cost <= limit
  if not entry.admits and cost <= limit then
    local last = first(entry.live, n, function(i) return counted(i + 1) + cost <= limit end)
    entry[2] = math.min(stamp(key, last), top) + period
  end
  return entry
end

-- Makes one entry, stamped now, of all that are stamped later.
local function repair(entry)
  local cut = first(0, entry.n, function(i) return stamp(entry.key, i) >= entry.top end)
  redis.call('LSET', entry.key, int(2 * cut + 1), int(entry.top))
  redis.call('LTRIM', entry.key, 0, int(2 * cut + 1))
  redis.call('RPUSH', entry.key, int(entry.total))
end

local function commit(entry)
  local after = int((entry.total + entry.cost) % WRAP)
  if not entry.newest then
    redis.call('RPUSH', entry.key, '0', int(entry.top), after)
  elseif entry.newest < entry.top then
    redis.call('RPUSH', entry.key, int(entry.top), after)
  else
    if entry.newest > entry.top then repair(entry) end
    redis.call('LSET', entry.key, -1, after)
  end
  if entry.newest and entry.live > 0 then
    redis.call('LTRIM', entry.key, int(2 * entry.live), -1)
  end
  keep(entry.key, entry.top + entry.period, entry.newest and entry.newest + entry.period)
end

local function undo(entry)
  if entry.newest and entry.newest > entry.top then
    repair(entry)
    keep(entry.key, entry.top + entry.period, entry.newest + entry.period)
  end
end

-- Without a receipt the newest charges are given back first.
local function refund(key, at)
  local cost, from, period = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local n = entries(key)
  if n < 0 then return end
  local sum, newest = total(key, n), stamp(key, n - 1)
  local live = first(0, n, function(i) return stamp(key, i) + period > now end)
  local charged = live
  if from then
    charged = first(live, n, function(i) return stamp(key, i) >= from end)
    if charged == n or stamp(key, charged) ~= from then return end
    cost = math.min(cost, (total(key, charged + 1) - total(key, charged)) % WRAP)
  else
    cost = math.min(cost, (sum - total(key, live)) % WRAP)
  end
  if cost == 0 then return end

  local kept = 0
  for i = n, charged + 1, -1 do
    local before = total(key, i)
    local lowered = from and cost or math.max(cost - (sum - before) % WRAP, 0)
    if lowered == 0 then break end
    redis.call('LSET', key, int(2 * i), int((before - lowered) % WRAP))
  end
  for i = n, live + 1, -1 do
    if total(key, i) ~= total(key, i - 1) then
      kept = i
      break
    end
  end
  if kept == 0 then
    redis.call('DEL', key)
  else
    redis.call('LTRIM', key, 0, int(2 * kept))
    keep(key, stamp(key, kept - 1) + period, newest + period)
  end
end
