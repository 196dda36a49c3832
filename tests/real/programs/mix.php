<?php
if (($argv[1] ?? '') === 'jit' && !opcache_get_status()['jit']['on'])
	exit(99);
function fib(int $n): int { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
echo fib(24), "\n";
$sieve = array_fill(0, 60000, true);
for ($i = 2; $i * $i < 60000; $i++)
	if ($sieve[$i])
		for ($j = $i * $i; $j < 60000; $j += $i) $sieve[$j] = false;
echo count(array_filter($sieve)) - 2, "\n";
$x = 0.0;
for ($i = 0; $i < 1000000; $i++) $x = $x * 0.5 + ($i % 7) / 3;
printf("%.12f\n", $x);
$text = file_get_contents('/usr/share/common-licenses/GPL-3');
$count = array_count_values(str_word_count(strtolower($text), 1));
arsort($count);
echo json_encode(array_slice($count, 0, 3)), ' ', md5($text), ' ', crc32($text), "\n";
echo preg_match_all('/\b(\w)\w*\1\b/i', $text), ' ', strlen(preg_replace_callback('/\w+/', fn($m) => ucfirst($m[0]), $text)), "\n";
function squares() { for ($i = 0; $i < 1000; $i++) yield $i => $i * $i; }
$sum = 0;
foreach (squares() as $k => $v) $sum += $v;
$caught = 0;
for ($i = 0; $i < 3000; $i++) {
	try {
		if ($i % 2) throw new LogicException("x");
		intdiv(1, 0);
	} catch (LogicException | DivisionByZeroError $e) {
		$caught++;
	}
}
echo $sum, ' ', $caught, "\n";
class Point { public function __construct(public float $x = 0, public float $y = 0) {} }
$points = array_map(fn($i) => new Point($i, -$i), range(1, 5000));
usort($points, fn($a, $b) => $a->y <=> $b->y);
echo $points[0]->x, ' ', serialize($points[1]), "\n";
exit(7);
