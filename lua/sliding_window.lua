-- Sliding window: an exact log of charges, or with a precision a counter of sub-windows.
-- Twin of ratelimit-runtime/src/algorithm/sliding_window.rs: change both or neither.
--
-- key    a list b0 t0 b1 t1 … B: the stamps t of entries in rising order, between running totals b of the permits charged
--        before them, B after the last. Charges of one sub-window are one entry, stamped with the time of the first, which
--        tells it from others that the sub-window had; in the log a sub-window is a microsecond.
-- args   cost, limit, period, precision                        permits, permits, microseconds, microseconds or 0
-- reply  permits counted, when so many have ended that the cost fits or 0, the stamp of the newest entry or 0
-- refund args: cost, stamp of the charged entry or '', period, precision
local width = 4

-- Running totals wrap here. A difference of two is exact, as it never exceeds the limit.
local WRAP = 2 ^ 50

-- Commands take a thousand values at once: Lua's stack holds no more than some thousands.
local CHUNK = 1000

local function number(key, index)
  return tonumber(redis.call('LINDEX', key, int(index)) or nil) or corrupt()
end

local function total(key, i)
  return number(key, 2 * i)
end

local function stamp(key, i)
  return number(key, 2 * i + 1)
end

-- The number of entries, negative for no list.
local function entries(key)
  local length = redis.call('LLEN', key)
  if length > 0 and (length < 3 or length % 2 == 0) then corrupt() end
  return (length - 1) / 2
end

-- The start of the sub-window.
local function slot(time, precision)
  return precision == 0 and time or time - time % precision
end

-- Counts until then.
local function ends(time, period, precision)
  return slot(time, precision) + precision + period
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
  local entry = {0, 0, 0, key = key, cost = cost, period = period, precision = precision, admits = cost <= limit, total = 0}
  if n < 0 then return entry end

  entry.n, entry.newest, entry.total = n, stamp(key, n - 1), total(key, n)
  entry.live = first(0, n, function(i) return ends(stamp(key, i), period, precision) > now end)
  if entry.live == n then return entry end

  local here = slot(now, precision)
  if slot(entry.newest, precision) > here then
    entry.cut = first(0, n, function(i) return slot(stamp(key, i), precision) >= here end)
  end
  local function counted(i) return (entry.total - total(key, i)) % WRAP end
  entry[1], entry[3] = counted(entry.live), entry.newest
  entry.admits = cost == 0 or entry[1] + cost <= limit
  if not entry.admits and cost <= limit then
    local last = first(entry.live, n, function(i) return counted(i + 1) + cost <= limit end)
    entry[2] = ends(math.min(stamp(key, last), now), period, precision)
  end
  return entry
end

-- Makes one entry, stamped now, of all that are not in an earlier sub-window.
local function repair(entry)
  redis.call('LSET', entry.key, int(2 * entry.cut + 1), int(now))
  redis.call('LTRIM', entry.key, 0, int(2 * entry.cut + 1))
  redis.call('RPUSH', entry.key, int(entry.total))
end

local function expire_after(entry)
  local was = entry.newest and ends(entry.newest, entry.period, entry.precision)
  keep(entry.key, ends(now, entry.period, entry.precision), was)
end

local function commit(entry)
  local after = int((entry.total + entry.cost) % WRAP)
  if not entry.newest then
    redis.call('RPUSH', entry.key, '0', int(now), after)
  elseif slot(entry.newest, entry.precision) < slot(now, entry.precision) then
    redis.call('RPUSH', entry.key, int(now), after)
  else
    if entry.cut then repair(entry) end
    redis.call('LSET', entry.key, -1, after)
  end
  if entry.newest and entry.live > 0 then
    redis.call('LTRIM', entry.key, int(2 * entry.live), -1)
  end
  expire_after(entry)
end

local function undo(entry)
  if entry.cut then
    repair(entry)
    expire_after(entry)
  end
end

-- Takes a cost from all totals from `i` on.
local function lower(key, i, cost)
  local tail = redis.call('LRANGE', key, int(2 * i), -1)
  for j = 1, #tail, 2 do
    tail[j] = int((tail[j] - cost) % WRAP)
  end
  redis.call('LTRIM', key, 0, int(2 * i - 1))
  for j = 1, #tail, CHUNK do
    redis.call('RPUSH', key, unpack(tail, j, math.min(j + CHUNK - 1, #tail)))
  end
end

-- Without a receipt the newest charges are given back first.
local function refund(key, at)
  local cost, from, period, precision =
    tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local n = entries(key)
  if n < 0 then return end
  local sum, newest = total(key, n), stamp(key, n - 1)
  local live = first(0, n, function(i) return ends(stamp(key, i), period, precision) > now end)
  local kept = n
  if from then
    local charged = first(live, n, function(i) return stamp(key, i) >= from end)
    if charged == n or stamp(key, charged) ~= from then return end
    cost = math.min(cost, (total(key, charged + 1) - total(key, charged)) % WRAP)
    if cost == 0 then return end
    lower(key, charged + 1, cost)
    while kept > live and total(key, kept) == total(key, kept - 1) do kept = kept - 1 end
  else
    cost = math.min(cost, (sum - total(key, live)) % WRAP)
    if cost == 0 then return end
    kept = first(live, n, function(i) return (sum - total(key, i)) % WRAP <= cost end)
    redis.call('LSET', key, int(2 * kept), int((sum - cost) % WRAP))
  end
  if kept == live then
    redis.call('DEL', key)
  else
    redis.call('LTRIM', key, 0, int(2 * kept))
    keep(key, ends(stamp(key, kept - 1), period, precision), ends(newest, period, precision))
  end
end
