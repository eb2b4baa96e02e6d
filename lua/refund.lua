-- Refunds charges of any algorithms, each on its own.
--
-- KEYS   the key of each charge
-- ARGV   8 of each charge: the number of its algorithm, and the arguments of `refund`, of which the last may be empty
-- reply  for each charge the text of an error, or an empty one
--[[ algorithms.lua ]]
local reply = {}
for i = 1, #KEYS do
  local ok, err = pcall(algorithm(tonumber(ARGV[8 * i - 7])).refund, KEYS[i], 8 * i - 6)
  reply[i] = ok and '' or error_text(err)
end
return reply
