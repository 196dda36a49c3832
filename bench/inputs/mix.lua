-- mix.lua ROUNDS: calls, tables, strings, floating point and garbage, a little of each per round
local rounds = tonumber(arg[1]) or 1

local function fannkuch(n)
	local p, q, s, sign, most, sum = {}, {}, {}, 1, 0, 0
	for i = 1, n do p[i], q[i], s[i] = i, i, i end
	repeat
		local q0 = p[1]
		if q0 ~= 1 then
			for i = 2, n do q[i] = p[i] end
			local flips = 1
			while true do
				local qq = q[q0]
				if qq == 1 then
					sum = sum + sign * flips
					if flips > most then most = flips end
					break
				end
				q[q0] = q0
				if q0 >= 4 then
					local i, j = 2, q0 - 1
					repeat q[i], q[j] = q[j], q[i]; i = i + 1; j = j - 1 until i >= j
				end
				q0 = qq
				flips = flips + 1
			end
		end
		if sign == 1 then
			p[1], p[2] = p[2], p[1]
			sign = -1
		else
			p[2], p[3] = p[3], p[2]
			sign = 1
			for i = 3, n do
				local sx = s[i]
				if sx ~= 1 then s[i] = sx - 1; break end
				if i == n then return sum, most end
				s[i] = i
				local t = p[1]
				for j = 1, i do p[j] = p[j + 1] end
				p[i + 1] = t
			end
		end
	until false
end

local function tree(depth)
	if depth == 0 then return {} end
	return {tree(depth - 1), tree(depth - 1)}
end

local function size(t)
	return t[1] and 1 + size(t[1]) + size(t[2]) or 1
end

local function spectral(n)
	local function a(i, j) local ij = i + j; return 1.0 / (ij * (ij + 1) * 0.5 + i + 1) end
	local u, v = {}, {}
	for i = 0, n - 1 do u[i] = 1 end
	for _ = 1, 4 do
		for i = 0, n - 1 do
			local sum = 0
			for j = 0, n - 1 do sum = sum + a(i, j) * u[j] end
			v[i] = sum
		end
		u, v = v, u
	end
	return u[n - 1]
end

local function words(n)
	local count, out = {}, {}
	for i = 1, n do
		local word = string.format("w%d", i * 7919 % 1009)
		count[word] = (count[word] or 0) + 1
	end
	for word, n in pairs(count) do out[#out + 1] = word .. ":" .. n end
	table.sort(out)
	return #table.concat(out, ","):gsub("%d+", string.upper)
end

for _ = 1, rounds do
	print(fannkuch(8), size(tree(14)), string.format("%.9f", spectral(200)), words(40000))
end
