-- Runs on Lua 5.4 and on LuaJIT: closures, coroutines, metatables, strings, numbers, error handling.
local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
print(fib(24))

local count, sieve = 0, {}
for i = 2, 60000 do
	if not sieve[i] then
		count = count + 1
		for j = i * i, 60000, i do sieve[j] = true end
	end
end
print(count)

local function permutations(list, n)
	if n == 0 then coroutine.yield(list) end
	for i = 1, n do
		list[n], list[i] = list[i], list[n]
		permutations(list, n - 1)
		list[n], list[i] = list[i], list[n]
	end
end
local sum, number = 0, 0
for list in coroutine.wrap(function() permutations({1, 2, 3, 4, 5, 6, 7}, 7) end) do
	number = number + 1
	sum = (sum * 31 + list[1] * list[7]) % 1000003
end
print(number, sum)

local Vector = {}
Vector.__index = Vector
Vector.__add = function(a, b) return setmetatable({x = a.x + b.x, y = a.y + b.y}, Vector) end
Vector.__tostring = function(v) return string.format("(%.3f, %.3f)", v.x, v.y) end
local v = setmetatable({x = 0, y = 0}, Vector)
for i = 1, 20000 do v = v + setmetatable({x = math.sin(i), y = 1 / i}, Vector) end
print(tostring(v))

local words = {}
for word in ("the quick brown fox jumps over the lazy dog "):rep(200):gmatch("%a+") do
	words[word] = (words[word] or 0) + 1
end
local keys = {}
for word in pairs(words) do keys[#keys + 1] = word .. "=" .. words[word] end
table.sort(keys)
print(table.concat(keys, " "), (("x"):rep(1000):gsub("x", "%0y")):len())

local caught = 0
for i = 1, 5000 do
	local ok, err = pcall(function() if i % 3 == 0 then error({code = i}) end return nil .. "" end)
	if not ok then caught = caught + (type(err) == "table" and err.code or 1) end
end
print(caught, select("#", string.byte(("abc"):rep(100), 1, -1)), collectgarbage("count") > 0)

local function matmul(n)
	local a, b, c = {}, {}, {}
	for i = 1, n do
		a[i], b[i], c[i] = {}, {}, {}
		for j = 1, n do a[i][j], b[i][j] = i + j, i - j end
	end
	for i = 1, n do
		for j = 1, n do
			local s = 0
			for k = 1, n do s = s + a[i][k] * b[k][j] end
			c[i][j] = s
		end
	end
	return c[n][1], c[1][n]
end
print(matmul(60))
