-- Semaphore: what each process holds of a key, in the epochs in which it says so. Twin of
-- ratelimit-runtime/src/algorithm/believed_holds.rs: change both or neither.
--
-- key    a hash, whose values are doubles, packed. `sum`: the permits of all shares; a time not after the first share expires; the second
--        in which the key expires; and of each process whose calls wait, in the order in which they get their permits, its turn: the
--        process, the permits, and until when it may ask again, or after its turn 0, and until when it may keep what it has. And of each
--        process and epoch, with these as its field, a share: the permits, until when they are believed to be held, how many were
--        released, and 1 if a report has begun the epoch, or else 0
-- args   cost, max, released, ttl, of      permits, permits; the permits that the process has released in the epoch, or -1 minus these if
--        it has a share already; microseconds, negative if the call waits; the field of its share. Without a cost the last three are 0
-- reply  held, forgotten, later            the permits held before the charge, or kept free for others; 1 if they would fit, but the
--        share is lost; 1 if it is others' turn: if they wait too, or for a call that is refused, if what is kept for them leaves too little
-- correct args: 1 to release, 0, permits released in the epoch, process, epoch; or 2 to extend, or 3 to report these permits, and as the
--        last one the ttl. Extending returns "HELD", how many permits are believed and how many were released, without numbers if there is no share

-- How long a process keeps its turn that does not ask again, and how long after its turn its calls follow each other.
local TURN, QUANTUM = 1000000, 200000

-- The number of values per command: Lua's stack holds only some thousands.
local CHUNK = 1000

local function whole(number)
  return number >= 0 and number <= 2 ^ 53 and number % 1 == 0 and number or corrupt()
end

-- Returns the numbers of a share.
local function load(value)
  if #value ~= 32 then corrupt() end
  local permits, till, released, reported = struct.unpack('<dddd', value)
  if whole(till) - now > LONGEST or whole(reported) > 1 then corrupt() end
  return whole(permits), till, whole(released), reported
end

-- Reads the numbers of a key, and the share of this field, unless it has expired.
local function read(key, field)
  local found = redis.call('HMGET', key, 'sum', field)
  local state = {key = key, field = field, sum = found[1], value = found[2], counted = 0}
  if state.sum then
    if #state.sum < 24 or #state.sum % 24 > 0 then corrupt() end
    local total, soonest, ends = struct.unpack('<ddd', state.sum)
    if math.max(whole(soonest), whole(ends) * 1000000) - now > LONGEST + 1000000 then corrupt() end
    state.counted, state.first, state.ends, state.is_exact = whole(total), soonest, ends, soonest > now
  elseif state.value then
    corrupt()
  end
  if state.value then
    local permits, till, released, reported = load(state.value)
    if till > now then
      state.permits, state.till, state.released, state.reported = permits, till, released, reported
    else
      state.is_exact = false
    end
  end
  return state
end

-- Reads all shares. Those that have expired no longer count, nor do those of a process from before an epoch.
local function count(state, process, epoch)
  local all, unpack_struct = redis.call('HGETALL', state.key), struct.unpack
  local held, first, latest, dropped = 0, 2 ^ 53, now + LONGEST, {}
  for i = 1, #all, 2 do
    local field, value = all[i], all[i + 1]
    if #field == 16 and #value == 32 then
      local permits, till = unpack_struct('<dd', value)
      if not (permits >= 0 and permits % 1 == 0 and till >= 0 and till <= latest and till % 1 == 0) then corrupt() end
      local by, since = unpack_struct('<dd', field)
      if till <= now or by == process and since < epoch then
        dropped[#dropped + 1] = field
      else
        held = held + permits
        if till < first then first = till end
      end
    elseif field ~= 'sum' then
      corrupt()
    end
  end
  if #all > 0 and not state.sum then corrupt() end
  state.counted, state.first, state.dropped = whole(held), first < 2 ^ 53 and first or nil, dropped
end

-- Drops the shares that no longer count, but not the one that was written. This cannot be undone, so it comes last.
local function drop(state)
  local fields = {}
  for _, field in ipairs(state.dropped) do
    if field ~= state.written then fields[#fields + 1] = field end
  end
  for i = 1, #fields, CHUNK do
    redis.call('HDEL', state.key, unpack(fields, i, math.min(i + CHUNK - 1, #fields)))
  end
end

-- Tries to drop in a way that changes nothing: a limiter has no field of this name.
local function try_drop(state)
  local dropped = state.dropped
  if dropped and dropped[1] then
    redis.call('HDEL', state.key, '')
    return true
  end
end

-- Writes what was counted, without any new share.
local function tidy(state)
  if not state.sum then return end
  if not state.first then return remove(state.key) end
  if try_drop(state) or struct.unpack('<d', state.sum, 9) ~= state.first then
    state.sum = struct.pack('<dd', state.counted, state.first) .. string.sub(state.sum, 17)
    redis.call('HSET', state.key, 'sum', state.sum)
    drop(state)
  end
end

-- Writes the share, and records in the state what `restore` needs.
local function write(state, permits, till, released, reported)
  local key, ends = state.key, math.max(math.floor(till / 1000000) + 1, state.ends or 0)
  if try_drop(state) then state.clean_up = drop end
  local total, soonest = state.counted - (state.permits or 0) + permits, math.min(till, state.first or till)
  local sum = struct.pack('<ddd', total, soonest, ends) .. (state.turns or state.sum and string.sub(state.sum, 25) or '')
  redis.call('HSET', key, 'sum', sum, state.field, struct.pack('<dddd', permits, till, released, reported))
  state.written = state.field
  if ends ~= state.ends then
    redis.call('EXPIREAT', key, ends)
    state.expires = true
  end
end

local function restore(state)
  if not state.written then return end
  local key, field = state.key, state.field
  if not state.sum then return remove(key) end
  redis.call('HSET', key, 'sum', state.sum)
  -- If the user may not run `HDEL`, a share that has expired does the same.
  if state.value or type(redis.pcall('HDEL', key, field)) ~= 'number' then
    redis.call('HSET', key, field, state.value or struct.pack('<dddd', 0, 0, 0, 0))
  end
  if state.expires then redis.call('EXPIREAT', key, (struct.unpack('<d', state.sum, 17))) end
end

-- Releases so many permits of an epoch in total. So messages that come twice or in another order make no difference, and the next one
-- makes up for one that is lost.
local function release(state, released)
  if not state.permits or released <= state.released then return end
  local left = math.max(state.permits - (released - state.released), 0)
  local total = whole(state.counted - state.permits + left)
  local sum = struct.pack('<d', total) .. string.sub(state.sum, 9)
  local share = struct.pack('<dddd', left, state.till, released, state.reported)
  redis.call('HSET', state.key, 'sum', sum, state.field, share)
  state.sum, state.value, state.counted, state.permits, state.released = sum, share, total, left, released
end

--[[ decisions ]]
-- Reads whose turn it is, and returns the permits that are kept free for others. One that has not asked for a while has lost its turn,
-- and so has one from the future.
local function turns(state, process)
  local kept, others = 0, {}
  for at = 25, #state.sum, 24 do
    local by, need, till = struct.unpack('<ddd', state.sum, at)
    local left = till - now
    if not (left > 0 and left <= TURN and state.first) then
      -- Where nothing is held, nothing is waited for.
    elseif by == process then
      state.own, state.place = string.sub(state.sum, at, at + 23), need > 0 and #others + 1
    else
      if not state.place then kept = kept + whole(need) end
      if need > 0 then state.next = state.next or need end
      others[#others + 1] = string.sub(state.sum, at, at + 23)
    end
  end
  state.others = others
  return kept
end

-- Whether a call follows one of its process that has ended, although others wait: for a while after its turn, a process keeps its part of
-- the permits, because others only learn of free ones when they ask. A call that needs more than that is not kept waiting so.
local function follows(state, cost, max)
  if not state.own or state.place or (state.next or 0) > cost then return false end
  local part = math.ceil(max / (#state.others + 1))
  return (state.permits or 0) + cost <= part and state.counted + cost <= max
end

-- Lets a process have its turn after those before it.
local function queue(state, process, permits)
  local till, others = now + TURN, state.others or {}
  local ends = math.max(math.floor(till / 1000000) + 1, state.ends)
  table.insert(others, state.place or #others + 1, struct.pack('<ddd', process, permits, till))
  local sum = string.sub(state.sum, 1, 16) .. struct.pack('<d', ends) .. table.concat(others)
  redis.call('HSET', state.key, 'sum', sum)
  if ends ~= state.ends then redis.call('EXPIREAT', state.key, ends) end
end

local function check(key, at)
  local cost, max, released, ttl, of = args[at], args[at + 1], args[at + 2], args[at + 3], args[at + 4]
  local process = cost > 0 and struct.unpack('<d', of) or 0
  local entry = read(key, cost > 0 and of or '')
  local has_share = released < 0
  if has_share then released = -1 - released end
  -- What has ended is released even if the call is refused, which it is even if the server refuses to write.
  if cost > 0 then pcall(release, entry, released) end
  if not entry.is_exact then count(entry) end
  local kept = entry.sum and #entry.sum > 24 and turns(entry, process) or 0
  if entry.counted + kept + cost > max and follows(entry, cost, max) then kept = 0 end
  local held = entry.counted + kept
  local fits = held + cost <= max
  local forgotten = fits and has_share and not entry.permits
  -- After its turn, a process waits for its own calls to end, as long as there are any.
  local awaits_own = entry.own and not entry.place and (entry.permits or 0) > 0
  local others_first = fits and entry.next or not fits and (awaits_own or kept + cost > max)
  entry[1], entry[2], entry[3] = held, forgotten and 1 or 0, others_first and 1 or 0
  entry.cost, entry.ttl, entry.process = cost, math.abs(ttl), process
  if not entry.permits then entry.released = released end
  entry.admits = cost == 0 or can_wait(now, 0) and fits and not forgotten
  entry.waits = not fits and cost <= max and ttl < 0 and not awaits_own
  return entry
end

local function commit(entry)
  local others = entry.others
  if others then
    if entry.own and not entry.place then
      others[#others + 1] = entry.own
    elseif entry.next then
      others[#others + 1] = struct.pack('<ddd', entry.process, 0, now + QUANTUM)
    end
    entry.turns = table.concat(others)
  end
  write(entry, (entry.permits or 0) + entry.cost, now + entry.ttl, entry.released, entry.reported or 0)
end

-- A call is refused even if the server refuses to write.
local function undo(entry)
  if entry.dropped then pcall(tidy, entry) end
  if entry.waits and entry.first then pcall(queue, entry, entry.process, entry.cost) end
end

--[[ corrections ]]
local function correct(key, at)
  local op, permits, process, epoch, till = args[at], args[at + 1], args[at + 3], args[at + 4], now + args[at + 5]
  local state = read(key, struct.pack('<dd', process, epoch))
  if op == 1 then return release(state, args[at + 2]) end
  count(state, process, epoch)
  local held = state.permits
  if not held and (op == 2 or permits == 0) then
    tidy(state)
    return op == 2 and 'HELD' or nil
  end
  local reported = state.reported or 0
  local after = (held or 0) + (op == 3 and reported == 0 and permits or 0)
  if op == 3 then reported = 1 end
  local ok, err = pcall(write, state, after, till, state.released or 0, reported)
  if ok and state.clean_up then ok, err = pcall(drop, state) end
  if not ok then
    restore(state)
    error(err)
  end
  return op == 2 and 'HELD ' .. int(held) .. ' ' .. int(state.released) or nil
end

local function pause()
  error({err = 'ERR a concurrency limit cannot be paused'})
end
