-- Fixed window: so many permits from a window's start to its end, the first call or a multiple of the period opens it.
-- Twin of ratelimit-runtime/src/algorithm/fixed_window.rs: change both or neither.
--
-- key    "opened count": the time of the window's first charge in microseconds, which tells it from others that began
--        as it did, and the permits charged to it
-- args   cost, limit, period, aligned                          permits, permits, microseconds, 1 or 0
-- reply  opened, count                                         of the window a call now falls into
-- refund args: cost, when the charged window opened or '', period, aligned
local width = 4

local function start(opened, period, aligned)
  return aligned and opened - opened % period or opened
end

local function load(value)
  local opened, count = string.match(value, '^(%d+) (%d+)$')
  if not count then corrupt() end
  return exactly(opened), exactly(count)
end

local function store(entry, count)
  local ends = start(entry[1], entry.period, entry.aligned) + entry.period
  set(entry.key, int(entry[1]) .. ' ' .. int(count), ends, entry.was)
end

local function check(key, at)
  local cost, limit, period, aligned =
    tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), ARGV[at + 3] == '1'
  local value = redis.call('GET', key)
  local entry = {now, 0, key = key, cost = cost, period = period, aligned = aligned, value = value}
  if value then
    local opened, count = load(value)
    local from = start(opened, period, aligned)
    entry.was = from + period
    if from > now then
      entry.future, entry[2] = true, count
    elseif now < from + period then
      entry[1], entry[2] = opened, count
    end
  end
  entry.admits = cost == 0 or entry[2] + cost <= limit
  return entry
end

local function commit(entry)
  store(entry, entry[2] + entry.cost)
end

local function undo(entry)
  if entry.future then store(entry, entry[2]) end
end

local restore = put_back

local function refund(key, at)
  local cost, from, period, aligned =
    tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), ARGV[at + 3] == '1'
  local value = redis.call('GET', key)
  if not value then return end
  local opened, count = load(value)
  local ends = start(opened, period, aligned) + period
  if now >= ends or from and from ~= opened then return end
  if count - cost <= 0 then
    remove(key)
  else
    set(key, int(opened) .. ' ' .. int(count - cost), ends, ends)
  end
end
