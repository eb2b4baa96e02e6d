-- Says once how integers are written as text. Redis would write numbers as floats, which takes longer.
if not integer then
  now_text, integer = format('%d', now), '%d'
  -- Some servers read only 32 bits of an integer.
  if now_text + 0 ~= now then now_text, integer = format('%.0f', now), '%.0f' end
end
