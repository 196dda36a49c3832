require 'digest'
require 'json'
require 'zlib'

def fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2)
puts fib(20)
puts (1..300).inject(:*).digits.sum
text = File.read('/usr/share/common-licenses/GPL-3')
p text.scan(/\w+/).tally.sort_by { |w, n| [-n, w] }.first(4)
p Digest::SHA256.hexdigest(text), Zlib::Deflate.deflate(text).size, JSON.parse(JSON.generate([1, { 'a' => nil }]))
p text.gsub(/(?<first>\w)(\w*)/) { $~[:first].upcase }.size

fiber = Fiber.new { 1000.times { |i| Fiber.yield i * i }; :done }
puts Array.new(1001) { fiber.resume }.last(2).inspect
queue = Queue.new
threads = 4.times.map { |t| Thread.new { 100.times { |i| queue << t * i } } }
threads.each(&:join)
puts queue.size
puts catch(:found) { (1..).each { |i| throw :found, i if i * i > 5000 } }
def deep(n) = deep(n + 1)
begin
	deep(0)
rescue SystemStackError => e
	puts e.message
end
trap('USR1') { puts 'usr1' }
Process.kill('USR1', Process.pid)
sleep 0.01
read, write = IO.pipe
pid = fork { read.close; write.puts 'from the child'; exit! 4 }
write.close
puts read.read
Process.wait pid
puts $?.exitstatus, `echo backquotes`
words = Array.new(3000) { |i| (i * 7919 % 3001).to_s(36) }
p words.sort.each_slice(1000).map(&:first), words.group_by(&:size).transform_values(&:count)
GC.start
at_exit { puts 'bye' }
exit 6
