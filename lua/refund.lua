-- Gives back what charges took.
--
-- KEYS   the key of every charge
-- ARGV   the 7 refund arguments of each, the last ones empty where an algorithm takes fewer
-- reply  now
for i = 1, #KEYS do
  local fine, problem = pcall(refund, KEYS[i], 7 * i - 6)
  if not fine then return {err = told(problem)} end
end
return now
