-- Calendar window: a limit from a window's start to its end, which a calendar knows. A window lasts until the end that it was opened
-- with. That is remembered for a while, so that the next one does not end soon after it: with another zone, or another version of the
-- zone's data, the end of the same month may come again. Twin of ratelimit-runtime/src/algorithm/calendar_window.rs: change both or
-- neither.
--
-- key    four doubles, packed: opened, the time of the window's first charge in microseconds, which identifies it; used, the permits
--        charged to it, and those that it owes; ends, when it is over; pays, how much of what is used it pays, and each of the next
--        windows
-- args   cost, limit, first, second, lengths                   permits, permits, and four times in a row at which windows begin: the
--        first two, and how many seconds the third and fourth are later than the one before, as third * 2^26 + fourth
-- reply  opened, used, ends, pays                              of the window that a call now belongs to
-- correct args: cost, negative for a debt; opened of the charged window or nil, for a debt the most permits that may be used; first,
--        second, lengths, limit
-- pause args: microseconds; the average length of a window

local DAY = 86400 * 1000000

-- How much the windows that pay a debt may exceed their average length together.
local SLACK = 3 * DAY

-- Returns the four times.
local function starts(at)
  local first, second, lengths = args[at], args[at + 1], args[at + 2]
  local last = lengths % 2 ^ 26
  local third = second + (lengths - last) / 2 ^ 26 * 1000000
  return first, second, third, third + last * 1000000
end

-- Returns the average length of a window.
local function average(at)
  local first, _, _, fourth = starts(at)
  local days = (fourth - first) / 3 / DAY
  return (days < 2 and 1 or days < 10 and 7 or days < 100 and 146097 / 4800 or 146097 / 400) * DAY
end

-- Returns for how long after the end of a window a boundary is the one at which it has ended: that of another time zone, or of other
-- data of the zone.
local function blur(length)
  return length == DAY and DAY / 2 or DAY + DAY / 8
end

-- Returns the start and end of the window that a time belongs to. If it is none of the three, the process is to ask again with others, as
-- no window is opened by its clock.
local function window(at, time)
  local first, second, third, fourth = starts(at)
  if time < first or time >= fourth then error({err = 'OUTSIDE ' .. int(time)}) end
  if time < second then return first, second end
  if time < third then return second, third end
  return third, fourth
end

-- Returns a time that is in the window after one that has ended, or is now if that is some time ago.
local function settled(stored)
  return math.max(now, stored.ends + blur(stored.length))
end

-- Returns until when a window and those that pay for it are remembered.
local function ends(window)
  local paying = math.ceil(math.max(window.used - window.pays, 0) / math.max(window.pays, 1))
  return window.ends + (paying > 0 and paying * window.length + SLACK or blur(window.length))
end

-- `length` is about that of a window.
local function load(value, length)
  if #value ~= 32 then corrupt() end
  local loaded = {}
  loaded.opened, loaded.used, loaded.ends, loaded.pays = struct.unpack('<dddd', value)
  for _, number in pairs(loaded) do parse_whole(number) end
  loaded.length = length
  -- No window lasts longer. Beyond that the value is from another program, and must not block the key.
  if not (loaded.ends - loaded.opened <= 2 * length + SLACK and ends(loaded) - loaded.ends <= 2 * LONGEST) then corrupt() end
  return loaded
end

-- Returns the window as of now, unless nothing of it is left. One that is over has passed on what it owed: each window after it
-- pays as much.
local function current(stored, at)
  if now < stored.ends then return stored end
  if stored.used <= stored.pays then return end
  local start, ends = window(at, settled(stored))
  -- As many as lie between them, because their lengths differ by little.
  local over = math.floor(math.max(start - stored.ends, 0) / stored.length + 0.5)
  local used = stored.used - stored.pays - over * stored.pays
  if used > 0 then return {opened = math.min(math.max(start, stored.ends), now), used = used, ends = ends, pays = stored.pays} end
end

local function store(key, window, was)
  set(key, struct.pack('<dddd', window.opened, window.used, window.ends, window.pays), ends(window), was)
end

--[[ decisions ]]
local function check(key, at)
  local cost, limit, value = args[at], args[at + 1], get(key)
  local entry = {now, 0, 0, 0, key = key, cost = cost, limit = limit, value = value, length = average(at + 2)}
  local found, time = nil, now
  if value then
    local stored = load(value, entry.length)
    if now >= stored.ends then time = settled(stored) end
    entry.was, found = ends(stored), current(stored, at + 2)
  end
  if found and found.opened <= now then
    entry[1], entry[2], entry[3], entry[4] = found.opened, found.used, found.ends, found.pays
  else
    -- A window from the future keeps what is used, and starts now.
    entry[3] = select(2, window(at + 2, time))
    if found then entry[2], entry[4], entry.future = found.used, found.pays, true end
  end
  entry.admits = cost == 0 or can_wait(now, 0) and entry[2] + cost <= limit
  return entry
end

-- Returns the window that was found, after a charge by a call of this limit.
local function charged(entry, cost, limit)
  return {opened = entry[1], used = entry[2] + cost, ends = entry[3], pays = math.max(entry[4], limit), length = entry.length}
end

local function commit(entry)
  store(entry.key, charged(entry, entry.cost, entry.limit), entry.was)
end

local function undo(entry)
  if entry.future then store(entry.key, charged(entry, 0, 0), entry.was) end
end

local restore = restore_value

--[[ corrections ]]
local function correct(key, at)
  local cost, from, limit = args[at], args[at + 1], args[at + 5]
  local length, value, stored, was, time = average(at + 2), get(key), nil, nil, now
  if value then
    stored = load(value, length)
    if now >= stored.ends then time = settled(stored) end
    was, stored = ends(stored), current(stored, at + 2)
  end
  if cost < 0 then
    if not stored or stored.opened > now then
      local _, ends = window(at + 2, time)
      stored = {opened = now, used = stored and stored.used or 0, ends = ends, pays = stored and stored.pays or 0}
    end
    local used, most = stored.used - cost, math.max(from, stored.used)
    -- A smaller limit neither lengthens nor shortens a debt.
    stored.used, stored.pays, stored.length = math.min(used, most), math.max(limit, stored.pays), length
    store(key, stored, was)
    return used > most
  end
  if not stored or from and from ~= stored.opened then return end
  stored.used, stored.length = stored.used - cost, length
  if stored.used <= 0 then remove(key) else store(key, stored, was) end
end

-- Keeps what is used, and its end.
local function pause(key, at)
  local value, over = get(key), 0
  if value then over = ends(load(value, args[at + 1])) end
  if halt(key, args[at]) > 0 then set(key, value or '', over) end
end
