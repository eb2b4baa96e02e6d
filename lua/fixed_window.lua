-- Fixed window: a limit from a window's start to its end. The first call opens the window, or a multiple of the period does.
-- Twin of ratelimit-runtime/src/algorithm/fixed_window.rs: change both or neither.
--
-- key    two doubles, packed: opened, the time of the window's first charge in microseconds, which identifies the window even if
--        two have the same start; and count, the permits charged to it. Of a window that owes, two more: owed, the permits that
--        the next windows are charged, and pays, how much of that each of them is charged at most
-- args   cost, limit, period, aligned                          permits, permits, microseconds, 1 or 0
-- reply  opened, count, owed, pays                             of the window that a call now belongs to
-- correct args: cost, negative for a debt; opened of the charged window or nil, for a debt the most permits that the next windows
--        may owe; period, aligned, limit
-- pause args: microseconds; period, aligned

local function start(opened, period, aligned)
  return aligned and opened - opened % period or opened
end

-- Returns when a window and those that pay for it are over.
local function ends(window, period, aligned)
  local paying = window.owed > 0 and math.ceil(window.owed / window.pays) or 0
  return start(window.opened, period, aligned) + (1 + paying) * period
end

-- Returns a window, and when it and those that pay for it are over.
local function load(value, period, aligned)
  local window = {owed = 0, pays = 0}
  if #value == 16 then
    window.opened, window.count = struct.unpack('<dd', value)
  elseif #value == 32 then
    window.opened, window.count, window.owed, window.pays = struct.unpack('<dddd', value)
  else
    corrupt()
  end
  for _, number in pairs(window) do parse_whole(number) end
  local over = ends(window, period, aligned)
  -- No window owes for longer. Beyond that the value is from another program, and must not block the key.
  if not (over - start(window.opened, period, aligned) <= period + 2 * LONGEST) then corrupt() end
  return window, over
end

-- Returns the window as of now, unless nothing of it is left. One that is over has passed on what it owed: each window after it
-- pays as much as it holds.
local function current(window, period, aligned)
  local ends = start(window.opened, period, aligned) + period
  if now < ends then return window end
  local over = math.floor((now - ends) / period)
  local left = window.owed - over * window.pays
  if left <= 0 then return end
  local count = math.min(left, window.pays)
  return {opened = ends + over * period, count = count, owed = left - count, pays = left > count and window.pays or 0}
end

local function store(key, window, period, aligned, was)
  local value = struct.pack('<dd', window.opened, window.count)
  if window.owed > 0 then value = value .. struct.pack('<dd', window.owed, window.pays) end
  set(key, value, ends(window, period, aligned), was)
end

--[[ decisions ]]
local function check(key, at)
  local cost, limit, period, aligned =
    args[at], args[at + 1], args[at + 2], args[at + 3] == 1
  local value = get(key)
  local entry = {now, 0, 0, 0, key = key, cost = cost, period = period, aligned = aligned, value = value}
  if value then
    local stored, ends = load(value, period, aligned)
    local window = current(stored, period, aligned)
    entry.was = ends
    if window then
      entry.future = start(window.opened, period, aligned) > now
      entry[1], entry[2] = entry.future and now or window.opened, window.count
      entry[3], entry[4] = window.owed, window.pays
    end
  end
  entry.admits = cost == 0 or can_wait(now, 0) and entry[2] + entry[3] + cost <= limit
  return entry
end

local function commit(entry)
  local window = {opened = entry[1], count = entry[2] + entry[3] + entry.cost, owed = 0}
  store(entry.key, window, entry.period, entry.aligned, entry.was)
end

local function undo(entry)
  if not entry.future then return end
  local window = {opened = now, count = entry[2], owed = entry[3], pays = entry[4]}
  store(entry.key, window, entry.period, entry.aligned, entry.was)
end

local restore = restore_value

--[[ corrections ]]
local function correct(key, at)
  local cost, from, period, aligned, limit =
    args[at], args[at + 1], args[at + 2], args[at + 3] == 1, args[at + 4]
  local value = get(key)
  local window, was
  if value then
    window, was = load(value, period, aligned)
    window = current(window, period, aligned)
  end
  if cost < 0 then
    window = window or {opened = now, count = 0, owed = 0, pays = 0}
    if start(window.opened, period, aligned) > now then window.opened = now end
    local fits = window.owed == 0 and math.min(-cost, math.max(limit - window.count, 0)) or 0
    local owed, most = window.owed - cost - fits, math.max(from, window.owed)
    -- A smaller limit neither lengthens nor shortens a debt.
    window.pays = math.max(limit, window.pays)
    window.count, window.owed = window.count + fits, math.min(owed, most)
    store(key, window, period, aligned, was)
    return owed > most
  end
  if not window or from and from ~= window.opened then return end
  window.count = window.count - math.max(cost - window.owed, 0)
  window.owed = math.max(window.owed - cost, 0)
  if window.count <= 0 then remove(key) else store(key, window, period, aligned, was) end
end

-- Keeps its count, and its end.
local function pause(key, at)
  local value, over = get(key), 0
  if value then over = select(2, load(value, args[at + 1], args[at + 2] == 1)) end
  if halt(key, args[at]) > 0 then set(key, value or '', over) end
end
