local ffi, bit = require("ffi"), require("bit")
ffi.cdef [[
int abs(int);
size_t strlen(const char *);
double sqrt(double);
void qsort(void *, size_t, size_t, int (*)(const int *, const int *));
typedef struct { double x, y, z; int32_t n; } point;
]]

assert(jit.status())
local hash = 5381
for i = 1, 20000000 do hash = bit.bxor(bit.rol(hash, 5), i) end
print(hash)

local s = 0.0
for i = 1, 5000000 do s = s + ffi.C.sqrt(i) / ffi.C.abs(-i) end
print(string.format("%.9f", s))

local points = ffi.new("point[?]", 1000)
for round = 1, 300 do
	for i = 0, 999 do
		local p = points[i]
		p.x, p.y, p.n = p.x + i * 0.5, p.y - round, p.n + 1
	end
end
print(points[999].x, points[500].y, points[7].n)

local array = ffi.new("int[?]", 2000)
for i = 0, 1999 do array[i] = i * 7919 % 2003 end
local compare = ffi.cast("int (*)(const int *, const int *)", function(a, b) return a[0] - b[0] end)
ffi.C.qsort(array, 2000, 4, compare)
compare:free()
local sorted = true
for i = 1, 1999 do sorted = sorted and array[i - 1] <= array[i] end
print(sorted, tonumber(ffi.C.strlen("seven b")))

-- Polymorphic loops make side traces and blacklisted ones; flushing throws all machine code away.
local function mixed(x)
	if type(x) == "number" then return x + 1 elseif type(x) == "string" then return #x else return x.n end
end
local total = 0
for round = 1, 20 do
	for i = 1, 20000 do total = total + mixed(i % 3 == 0 and "abc" or i % 3 == 1 and i or {n = 2}) end
	jit.flush()
end
print(total)
for i = 1, 300 do
	local f = loadstring("local t = 0; for i = 1, 200 do t = t + i * " .. i .. " end; return t")
	total = total + f()
end
print(total)
