-- Fixed window: so many permits from a window's start to its end, the first call or a multiple of the period opens it.
-- Twin of ratelimit-runtime/src/algorithm/fixed_window.rs: change both or neither.
--
-- key    "start count": when the window opened in microseconds, and the permits charged to it
-- args   cost, limit, period, aligned                          permits, permits, microseconds, 1 or 0
-- reply  start, count                                          of the window a call now falls into
-- refund args: cost, start of the charged window or '', period
local width = 4

local function load(value)
  local start, count = string.match(value, '^(%d+) (%d+)$')
  if not count then corrupt() end
  return tonumber(start), tonumber(count)
end

local function store(entry, keeps_expiry)
  local start, count = entry[1], entry.count
  set(entry.key, int(start) .. ' ' .. int(count), keeps_expiry)
  if not keeps_expiry then keep(entry.key, start + entry.period) end
end

local function check(key, at)
  local cost, limit, period = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local value = redis.call('GET', key)
  local opens = ARGV[at + 3] == '1' and now - now % period or now
  local entry = {opens, 0, key = key, cost = cost, period = period}
  if value then
    local start, count = load(value)
    if start > now then
      entry.future, entry[2] = true, count
    elseif now < start + period then
      entry.open, entry[1], entry[2] = true, start, count
    end
  end
  entry.admits = cost == 0 or entry[2] + cost <= limit
  return entry
end

local function commit(entry)
  entry.count = entry[2] + entry.cost
  store(entry, entry.open)
end

local function undo(entry)
  entry.count = entry[2]
  if entry.future then store(entry) end
end

local function refund(key, at)
  local cost, from, period = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local value = redis.call('GET', key)
  if not value then return end
  local start, count = load(value)
  if now >= start + period or from and from ~= start then return end
  if count - cost <= 0 then
    redis.call('DEL', key)
  else
    store({start, key = key, count = count - cost, period = period}, true)
  end
end
