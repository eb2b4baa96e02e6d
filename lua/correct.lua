-- Gives permits back to keys of any algorithms, charges them what calls have used beyond their costs, or pauses them, each on its own.
--
-- KEYS   the key of each
-- ARGV   8 of each: the number of its algorithm, and the arguments of `correct`, of which the last may be empty; or that number
--        negative, and the arguments of `pause`
-- reply  for each the text of an error, an empty one, or CUT if a debt was cut

-- What `check` reads, for the algorithms that use it.
local args
--[[ algorithms.lua ]]
local reply = {}
for i = 1, #KEYS do
  local kind = tonumber(ARGV[8 * i - 7])
  local of = algorithm(math.abs(kind))
  local ok, result = pcall(kind > 0 and of.correct or of.pause, KEYS[i], 8 * i - 6)
  now = started
  reply[i] = ok and (result and 'CUT' or '') or error_text(result)
end
return reply
