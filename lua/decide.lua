--[[ algorithms.lua ]]

-- Takes a charge back that was added to a bucket which `was` full then: `touched` if it was also moved to now, with its expiry.
local function give_back(key, charge, was, touched)
  if was == 0 then return remove(key) end
  local tat = touched and math.max(was, now) or was
  redis.call('INCRBY', key, was - tat - charge)
  if touched then expire(key, was, tat + charge) end
end

-- Lets a call that waits for several literal buckets start at the slot of its line, the only one that joins no other, so that all
-- count then. Returns whether the others will be ready by that slot. Twin of ratelimit-runtime/src/store/judge.rs.
local function start_together(entries)
  local line, others = nil, {}
  for _, entry in ipairs(entries) do
    if entry.cost > 0 and not entry.shadow then
      if entry.joins then others[#others + 1] = entry else line = entry end
    end
  end
  local ready = true
  for _, entry in ipairs(others) do
    if entry.waits > line.waits then ready, entry.admits = false, false end
  end
  if not ready or #others == 0 or line.waits == 0 then return ready end
  for _, entry in ipairs(others) do entry.slot = started + line.waits end
  return true
end

-- Whether an error asks for the windows of calendars around another time, which only costs another call.
local function asks_for_time(text)
  return type(text) == 'string' and string.find(text, 'OUTSIDE ', 1, true)
end

-- Charges what is admitted.
local function commit(entry)
  if entry.pause then entry.pause.spent = false end
  entry.of.commit(entry)
end

-- Runs a step of an algorithm as of the time of its key.
local function run(step, entry)
  now = entry.now
  local ok, err = pcall(step, entry)
  now = started
  return ok, err
end

-- Charges nothing. A pause from the future is moved to now, as a state is.
local function undo(entry)
  entry.of.undo(entry)
  if entry.pause and entry.pause.future then set(entry.key, entry.value or '', entry.was or 0) end
end

-- Decides about a list of charges, all or nothing except for shadows. `offset` is the number of keys before those of the list, and
-- `size` the number of its charges, whose arguments are in `args`, six for each: its kind, which is the number of its algorithm,
-- negative for a shadow, and those of `check`.
--
-- Returns for each charge 1 or 0 for admitted by its own policy, and what its check read. If its key is paused or penalized, or calls
-- wait that have waited through a pause, there is, in place of 1 or 0, when that ends, negative for 0, by how much slots have moved,
-- the step of the penalties then, negative and one less if they are spent, and after how long one is forgiven. The text of an error
-- replaces the whole decision, or what is returned for a shadow.
--
-- If all required charges are admitted, they are charged, and with them each shadow that is admitted. A charge of cost 0
-- only reads, what one of cost 1 would find, and counts as admitted. Redis does not roll back a failed script, so an error,
-- which may follow a charge, is caught, and every key is restored before the error is returned. The error of a shadow only
-- means that the shadow is not charged.
local function decide(offset, size)
  local entries, admitted, failure, needs_cleanup = {}, true, nil, false
  for i = 1, size do
    local at = 6 * i - 5
    local of, shadow = algorithm(math.abs(args[at])), args[at] < 0
    local key = KEYS[offset + i]
    local ok, entry = pcall(of.check, key, at + 1)
    local time = now
    now = started
    if not ok then
      entry = {error_text(entry), cost = 0, failed = true}
      -- A process that is to ask again has charged nothing yet.
      if not shadow or asks_for_time(entry[1]) then failure = entry[1] end
    end
    local pause = ok and pauses[key]
    entry.of, entry.shadow, entry.now, entry.pause, entry.spent = of, shadow, time, pause, pause and pause.spent
    entries[i] = entry
    if failure then break end
    admitted = admitted and (entry.admits or shadow)
  end
  admitted = admitted and not failure and start_together(entries)
  for _, entry in ipairs(entries) do
    if entry.cost > 0 and not entry.shadow and not failure then
      local ok, err = run(admitted and commit or undo, entry)
      entry.done, needs_cleanup = ok, needs_cleanup or entry.clean_up
      if not ok then failure = error_text(err) end
    end
  end
  -- Cleaning up cannot be undone, so it comes after all charges.
  for i = 1, needs_cleanup and not failure and size or 0 do
    local entry = entries[i]
    if entry.clean_up then
      local ok, err = run(entry.clean_up, entry)
      if not ok then failure = error_text(err) end
    end
  end
  if failure then
    for _, entry in ipairs(entries) do run(entry.of.restore, entry) end
    return failure
  end
  local decision = {}
  for _, entry in ipairs(entries) do
    if entry.shadow and entry.cost > 0 then
      local ok, err = run(admitted and entry.admits and commit or undo, entry)
      entry.done = ok
      if ok and entry.clean_up then ok, err = run(entry.clean_up, entry) end
      if not ok then
        run(entry.of.restore, entry)
        entry = {error_text(err), failed = true}
      end
    end
    local pause = entry.pause
    if not entry.failed and pause then
      decision[#decision + 1] = entry.admits and pause.till or -pause.till
      decision[#decision + 1] = pause.moved
      decision[#decision + 1] = entry.spent and -1 - pause.step or pause.step
      decision[#decision + 1] = pause.forgiven
    elseif not entry.failed then
      decision[#decision + 1] = entry.admits and 1 or 0
    end
    for _, number in ipairs(entry) do decision[#decision + 1] = number end
  end
  return decision
end
