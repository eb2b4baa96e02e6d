-- Refunds charges.
--
-- KEYS   the key of each charge
-- ARGV   the 7 refund arguments of each charge, of which the last may be empty
-- reply  now
for i = 1, #KEYS do
  local ok, err = pcall(refund, KEYS[i], 7 * i - 6)
  if not ok then return {err = error_text(err)} end
end
return now
