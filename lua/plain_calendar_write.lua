    elseif kind == 11 then
      local ends = found[f + 3]
      if ends then
        result = call('SET', key, found[f + 2], 'EXAT', (ends - ends % 1000000) / 1000000 + 1)
      else
        result = call('SET', key, found[f + 2], 'KEEPTTL')
      end
      if result.err then failed = true break end
      done = i
