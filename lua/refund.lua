-- Gives back what charges took.
--
-- KEYS   the key of every charge
-- ARGV   the 7 refund arguments of each, the last ones empty where an algorithm takes fewer
-- reply  now
for i = 1, #KEYS do
  refund(KEYS[i], 7 * i - 6)
end
return now
