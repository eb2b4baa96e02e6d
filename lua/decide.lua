-- Makes decisions, each about a list of charges, all or nothing except for shadows.
--
-- KEYS   the key of each charge, in order; the keys of one decision are distinct
-- ARGV   for each decision the number of its charges, or if there are shadows a letter for each charge, `s` for a shadow
--        and `r` for the others, which are required; then the `width` arguments of each charge
-- reply  now, then for each decision 1 or 0 for admitted, followed by what each check read and, for a shadow, 1 or 0 for
--        admitted by its own spec. The text of an error replaces the whole decision, or what the check of a shadow read
--
-- If all required charges are admitted, they are charged, and with them each shadow that is admitted. A charge of cost 0
-- only reads. Redis does not roll back a failed script, so an error, which may follow a charge, is caught, and every key
-- is restored before it is replied. The error of a shadow only means that the shadow is not charged.
local reply = {now}
local key_offset, at = 0, 1
while ARGV[at] do
  local entries, admitted, failure, needs_cleanup = {}, true, nil, false
  local size, kinds = tonumber(ARGV[at])
  if not size then size, kinds = #ARGV[at], ARGV[at] end
  at = at + 1
  for i = 1, size do
    if not failure then
      local ok, entry = pcall(check, KEYS[key_offset + i], at)
      local shadow = kinds and string.sub(kinds, i, i) == 's'
      if not ok then
        entry = {error_text(entry), cost = 0}
        if not shadow then failure = entry[1] end
      end
      entry.shadow = shadow
      entries[i] = entry
      admitted = admitted and (entry.admits or shadow)
    end
    at = at + width
  end
  key_offset = key_offset + size
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
  end
  reply[#reply + 1] = failure or (admitted and 1 or 0)
  for i = 1, failure and 0 or size do
    local entry = entries[i]
    if entry.shadow and entry.cost > 0 then
      local ok, err = pcall(admitted and entry.admits and commit or undo, entry)
      entry.done = ok
      if ok and entry.clean_up then ok, err = pcall(entry.clean_up, entry) end
      if not ok then
        pcall(restore, entry)
        entry = {error_text(err), shadow = true}
      end
    end
    for _, number in ipairs(entry) do reply[#reply + 1] = number end
    if entry.shadow then reply[#reply + 1] = entry.admits and 1 or 0 end
  end
end
return reply
