-- Gives permits back to keys of any algorithms, or charges them what calls have used beyond their costs, each on its own.
--
-- KEYS   the key of each charge
-- ARGV   8 of each charge: the number of its algorithm, and the arguments of `correct`, of which the last may be empty
-- reply  for each charge the text of an error, an empty one, or CUT if a debt was cut

-- What `check` reads, for the algorithms that use it.
local args
--[[ algorithms.lua ]]
local reply = {}
for i = 1, #KEYS do
  local ok, result = pcall(algorithm(tonumber(ARGV[8 * i - 7])).correct, KEYS[i], 8 * i - 6)
  reply[i] = ok and (result and 'CUT' or '') or error_text(result)
end
return reply
