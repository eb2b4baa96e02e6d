-- Fixed window: a limit from a window's start to its end. The first call opens the window, or a multiple of the period does.
-- Twin of ratelimit-runtime/src/algorithm/fixed_window.rs: change both or neither.
--
-- key    two doubles, packed: opened, the time of the window's first charge in microseconds, which identifies the window even if
--        two have the same start; and count, the permits charged to it
-- args   cost, limit, period, aligned                          permits, permits, microseconds, 1 or 0
-- reply  opened, count                                         of the window that a call now belongs to
-- refund args: cost, opened of the charged window or '', period, aligned

local function start(opened, period, aligned)
  return aligned and opened - opened % period or opened
end

local function load(value)
  if #value ~= 16 then corrupt() end
  local opened, count = struct.unpack('<dd', value)
  return parse_whole(opened), parse_whole(count)
end

local function store(entry, count)
  local ends = start(entry[1], entry.period, entry.aligned) + entry.period
  set(entry.key, struct.pack('<dd', entry[1], count), ends, entry.was)
end

local function check(key, at)
  local cost, limit, period, aligned =
    args[at], args[at + 1], args[at + 2], args[at + 3] == 1
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

local restore = restore_value

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
    set(key, struct.pack('<dd', opened, count - cost), ends, ends)
  end
end
