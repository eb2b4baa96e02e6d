-- Semaphore: what each process holds of a key, in the epochs in which it says so. Twin of
-- ratelimit-runtime/src/algorithm/believed_holds.rs: change both or neither.
--
-- key    a hash: `total`, the permits of all shares in it; `soonest`, a time not after the first share expires; `ends`, the second in
--        which the key expires; and of each process and epoch a share, "process:epoch", four doubles, packed: the permits, until when
--        they are believed to be held, how many were released, and 1 if a report has begun the epoch, or else 0
--        Of processes whose calls wait, `turns`: "process:permits:until" of each, in the order in which they get their permits
-- args   cost, max, process, epoch, ttl    permits, permits; the epoch is negative if the process has a share already; microseconds,
--        negative if the call waits. Or a negative cost, and in place of max the permits that the process has released in the epoch
-- reply  held, forgotten, later            the permits held before the charge, or kept free for others; 1 if they would fit, but the
--        share is lost; 1 if it is others' turn: if they wait too, or for a call that is refused, if what is kept for them leaves too little
-- correct args: 1 to release, 0, permits released in the epoch, process, epoch; or 2 to extend, or 3 to report these permits, and as the
--        last one the ttl. Extending returns "HELD", how many permits are believed and how many were released, without numbers if there is no share

-- How long a process keeps its turn that does not ask again.
local TURN = 1000000

-- The number of values per command: Lua's stack holds only some thousands.
local CHUNK = 1000

-- Returns the numbers of a share.
local function load(value)
  if #value ~= 32 then corrupt() end
  local permits, till, released, reported = struct.unpack('<dddd', value)
  if parse_whole(till) - now > LONGEST or parse_whole(reported) > 1 then corrupt() end
  return parse_whole(permits), till, parse_whole(released), reported
end

-- Reads the numbers of a key, and the share of a process, unless it has expired.
local function read(key, process, epoch)
  local field = string.format('%.0f:%.0f', process, epoch)
  local found = redis.call('HMGET', key, 'total', 'soonest', 'ends', field, 'turns')
  local state = {key = key, field = field, value = found[4], counted = 0, turns = found[5] or ''}
  if found[1] or found[2] or found[3] or found[4] or found[5] then
    state.total, state.soonest, state.ends = parse_whole(found[1]), parse_whole(found[2]), parse_whole(found[3])
    if math.max(state.soonest, state.ends * 1000000) - now > LONGEST + 1000000 then corrupt() end
    state.counted, state.first, state.is_exact = state.total, state.soonest, state.soonest > now
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
  local all, unpack_struct, sub = redis.call('HGETALL', state.key), struct.unpack, string.sub
  local held, first, latest, dropped, others = 0, 2 ^ 53, now + LONGEST, {}, 0
  local prefix = process and int(process) .. ':'
  local length = prefix and #prefix
  for i = 1, #all, 2 do
    local field, value = all[i], all[i + 1]
    if field == 'turns' then
      -- Read already.
    elseif #value == 32 then
      local permits, till = unpack_struct('<dd', value)
      if not (permits >= 0 and permits % 1 == 0 and till >= 0 and till <= latest and till % 1 == 0) then corrupt() end
      if till <= now or prefix and sub(field, 1, length) == prefix and parse(sub(field, length + 1)) < epoch then
        dropped[#dropped + 1] = field
      else
        held = held + permits
        if till < first then first = till end
      end
    elseif field == 'total' or field == 'soonest' or field == 'ends' then
      others = others + 1
    else
      corrupt()
    end
  end
  if others ~= (state.total and 3 or 0) or #all > 0 and others == 0 then corrupt() end
  state.counted, state.first, state.dropped = parse(held), first < 2 ^ 53 and first or nil, dropped
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
  if not state.total then return end
  if not state.first then return remove(state.key) end
  if try_drop(state) or state.first ~= state.soonest then
    redis.call('HSET', state.key, 'total', int(state.counted), 'soonest', int(state.first))
    drop(state)
  end
end

-- Writes the share, and records in the state what `restore` needs. A process that gets its permits has had its turn.
local function write(state, permits, till, released, reported)
  local key, ends = state.key, math.max(math.floor(till / 1000000) + 1, state.ends or 0)
  if try_drop(state) then state.clean_up = drop end
  local total, soonest = state.counted - (state.permits or 0) + permits, math.min(till, state.first or till)
  local share = struct.pack('<dddd', permits, till, released, reported)
  if state.left then
    redis.call(
      'HSET', key, 'total', int(total), 'soonest', int(soonest), 'ends', int(ends), state.field, share, 'turns', state.left
    )
  else
    redis.call('HSET', key, 'total', int(total), 'soonest', int(soonest), 'ends', int(ends), state.field, share)
  end
  state.written = state.field
  if ends ~= state.ends then
    redis.call('EXPIREAT', key, ends)
    state.expires = true
  end
end

local function restore(state)
  if not state.written then return end
  local key, field = state.key, state.field
  if not state.total then return remove(key) end
  redis.call('HSET', key, 'total', int(state.total), 'soonest', int(state.soonest), 'ends', int(state.ends))
  if state.left then redis.call('HSET', key, 'turns', state.turns) end
  -- If the user may not run `HDEL`, a share that has expired does the same.
  if state.value or type(redis.pcall('HDEL', key, field)) ~= 'number' then
    redis.call('HSET', key, field, state.value or struct.pack('<dddd', 0, 0, 0, 0))
  end
  if state.expires then redis.call('EXPIREAT', key, state.ends) end
end

-- Releases so many permits of an epoch in total. So messages that come twice or in another order make no difference, and the next one
-- makes up for one that is lost.
local function release(state, released)
  if not state.permits or released <= state.released then return end
  local left = math.max(state.permits - (released - state.released), 0)
  local total = parse(state.total - state.permits + left)
  local share = struct.pack('<dddd', left, state.till, released, state.reported)
  redis.call('HSET', state.key, 'total', int(total), state.field, share)
end

--[[ decisions ]]
-- Reads whose turn it is, and returns the permits that are kept free for others. One that has not asked for a while has lost its turn,
-- and so has one from the future.
local function turns(state, process)
  local kept, own, others = 0, int(process), {}
  for of, need, till in string.gmatch(state.turns, '(%d+):(%d+):(%d+)') do
    local left = parse(till) - now
    if left <= 0 or left > TURN or not state.first then
      -- Where nothing is held, nobody waits.
    elseif of == own then
      state.place = #others + 1
    else
      if not state.place then kept = kept + parse_whole(need) end
      others[#others + 1] = of .. ':' .. need .. ':' .. till
    end
  end
  state.others, state.left = others, table.concat(others, ' ')
  return kept
end

-- Lets a process have its turn after those before it.
local function queue(state, process, permits)
  local till, others = now + TURN, state.others or {}
  local ends = math.max(math.floor(till / 1000000) + 1, state.ends)
  table.insert(others, state.place or #others + 1, int(process) .. ':' .. int(permits) .. ':' .. int(till))
  redis.call('HSET', state.key, 'ends', int(ends), 'turns', table.concat(others, ' '))
  if ends ~= state.ends then redis.call('EXPIREAT', state.key, ends) end
end

local function check(key, at)
  local cost, max, process, epoch = args[at], args[at + 1], args[at + 2], args[at + 3]
  local entry = read(key, process, math.abs(epoch))
  if cost < 0 then
    entry[1], entry[2], entry[3] = entry.counted, 0, 0
    entry.cost, entry.releases, entry.admits = -cost, max, true
    return entry
  end
  if not entry.is_exact then count(entry) end
  local kept = entry.turns == '' and 0 or turns(entry, process)
  local held = entry.counted + kept
  local fits = held + cost <= max
  local forgotten = fits and epoch < 0 and not entry.permits
  local others_first = fits and entry.others and entry.others[1] or not fits and kept + cost > max
  entry[1], entry[2], entry[3] = held, forgotten and 1 or 0, others_first and 1 or 0
  entry.cost, entry.ttl = cost, math.abs(args[at + 4])
  entry.admits = cost == 0 or can_wait(now, 0) and fits and not forgotten
  entry.waits, entry.process = not fits and cost <= max and args[at + 4] < 0, process
  return entry
end

local function commit(entry)
  if entry.releases then return release(entry, entry.releases) end
  write(entry, (entry.permits or 0) + entry.cost, now + entry.ttl, entry.released or 0, entry.reported or 0)
end

-- A call is refused even if the server refuses to write.
local function undo(entry)
  if entry.dropped then pcall(tidy, entry) end
  if entry.waits and entry.first then pcall(queue, entry, entry.process, entry.cost) end
end

--[[ corrections ]]
local function correct(key, at)
  local op, permits, process, epoch, till = args[at], args[at + 1], args[at + 3], args[at + 4], now + args[at + 5]
  local state = read(key, process, epoch)
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
