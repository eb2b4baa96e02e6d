-- Decides about a list of charges, all or nothing except for shadows.
--
-- `offset` is the number of keys before those of the list, `size` the number of its charges, and `at` the index of the arguments
-- of the first. `kinds` has a letter for each charge, `s` for a shadow and `r` for the others, which are required; without shadows it
-- is nil.
--
-- Returns 1 or 0 for admitted, followed by what each check read and, for a shadow, 1 or 0 for admitted by its own spec. The text
-- of an error replaces the whole decision, or what the check of a shadow read.
--
-- If all required charges are admitted, they are charged, and with them each shadow that is admitted. A charge of cost 0
-- only reads, what one of cost 1 would find, and counts as admitted. Redis does not roll back a failed script, so an error,
-- which may follow a charge, is caught, and every key is restored before the error is returned. The error of a shadow only
-- means that the shadow is not charged.
local function decide(offset, size, kinds, at)
  local entries, admitted, failure, needs_cleanup = {}, true, nil, false
  for i = 1, size do
    local ok, entry = pcall(check, KEYS[offset + i], at + (i - 1) * width)
    local shadow = kinds and string.sub(kinds, i, i) == 's'
    if not ok then
      entry = {error_text(entry), cost = 0}
      if not shadow then failure = entry[1] end
    end
    entry.shadow = shadow
    entries[i] = entry
    if failure then break end
    admitted = admitted and (entry.admits or shadow)
  end
  for _, entry in ipairs(entries) do
    if entry.cost > 0 and not entry.shadow and not failure then
      local ok, err = pcall(admitted and commit or undo, entry)
      entry.done, needs_cleanup = ok, needs_cleanup or entry.clean_up
      if not ok then failure = error_text(err) end
    end
  end
  -- Cleaning up cannot be undone, so it comes after all charges.
  for i = 1, needs_cleanup and not failure and size or 0 do
    local entry = entries[i]
    if entry.clean_up then
      local ok, err = pcall(entry.clean_up, entry)
      if not ok then failure = error_text(err) end
    end
  end
  if failure then
    for _, entry in ipairs(entries) do pcall(restore, entry) end
    return failure
  end
  local decision = {admitted and 1 or 0}
  for _, entry in ipairs(entries) do
    if entry.shadow and entry.cost > 0 then
      local ok, err = pcall(admitted and entry.admits and commit or undo, entry)
      entry.done = ok
      if ok and entry.clean_up then ok, err = pcall(entry.clean_up, entry) end
      if not ok then
        pcall(restore, entry)
        entry = {error_text(err), shadow = true}
      end
    end
    for _, number in ipairs(entry) do decision[#decision + 1] = number end
    if entry.shadow then decision[#decision + 1] = entry.admits and 1 or 0 end
  end
  return decision
end
