-- Decides a list of decisions, each a list of charges, each decision all or nothing but for shadows.
--
-- KEYS   the key of every charge, in order; those of one decision are distinct
-- ARGV   for every decision the number of its charges, or where shadows are among them a letter for each, `s` for a
--        shadow and `r` for the others, which are required; then the `width` arguments of each
-- reply  now, then for every decision whether it is admitted, 1 or 0, and what each of its checks read, after that of a
--        shadow whether its rule admits it, 1 or 0; or in place of these the text of the error that one of them met, that
--        of a shadow in place of what its check read
--
-- The required charges decide: if all of them are admitted they are charged, and with them the shadows that are.
-- A charge that costs nothing only looks. Redis takes nothing back when a script fails, so a failure, which may come after a
-- charge, is caught, and every key is restored before it is told. That of a shadow only says that it admits nothing.
local reply = {now}
local k, at = 0, 1
while ARGV[at] do
  local entries, admitted, failure, untidy = {}, true, nil, false
  local size, kinds = tonumber(ARGV[at])
  if not size then size, kinds = #ARGV[at], ARGV[at] end
  at = at + 1
  for i = 1, size do
    if not failure then
      local fine, entry = pcall(check, KEYS[k + i], at)
      local shadow = kinds and string.sub(kinds, i, i) == 's'
      if not fine then
        entry = {told(entry), cost = 0}
        if not shadow then failure = entry[1] end
      end
      entry.shadow = shadow
      entries[i] = entry
      admitted = admitted and (entry.admits or shadow)
    end
    at = at + width
  end
  k = k + size
  for _, entry in ipairs(entries) do
    if entry.cost > 0 and not entry.shadow and not failure then
      local fine, problem = pcall(admitted and commit or undo, entry)
      entry.done, untidy = fine, untidy or entry.tidy
      if not fine then failure = told(problem) end
    end
  end
  -- What this throws away does not come back, so every charge is made before.
  for i = 1, untidy and not failure and size or 0 do
    local entry = entries[i]
    if entry.tidy then
      local fine, problem = pcall(entry.tidy, entry)
      if not fine then failure = told(problem) end
    end
  end
  if failure then
    for _, entry in ipairs(entries) do pcall(restore, entry) end
  end
  reply[#reply + 1] = failure or (admitted and 1 or 0)
  for i = 1, failure and 0 or size do
    local entry = entries[i]
    if entry.shadow and entry.cost > 0 then
      local fine, problem = pcall(admitted and entry.admits and commit or undo, entry)
      entry.done = fine
      if fine and entry.tidy then fine, problem = pcall(entry.tidy, entry) end
      if not fine then
        pcall(restore, entry)
        entry = {told(problem), shadow = true}
      end
    end
    for _, number in ipairs(entry) do reply[#reply + 1] = number end
    if entry.shadow then reply[#reply + 1] = entry.admits and 1 or 0 end
  end
end
return reply
