# mix.pl ROUNDS: hashes, arrays, regular expressions, calls and string building, a little of each per round
use strict;
use warnings;

my $text = join '', map { local (@ARGV, $/) = "/usr/share/common-licenses/$_"; <> } qw(GPL-2 GPL-3 LGPL-2.1);

sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) }

for (1 .. $ARGV[0]) {
	my %count;
	$count{lc $1}++ while $text =~ /\b([A-Za-z]+)\b/g;
	my @top = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 3];
	my $turned = $text;
	$turned =~ s/(\w+)(\W+)(\w+)/$3$2$1/g;
	my @sieve = (1) x 60000;
	for (my $i = 2; $i * $i < @sieve; $i++) {
		next unless $sieve[$i];
		for (my $j = $i * $i; $j < @sieve; $j += $i) { $sieve[$j] = 0 }
	}
	my %grid;
	$grid{($_ * 7919) % 401, ($_ * 104729) % 397} += $_ for 1 .. 30000;
	my $line = '';
	$line .= sprintf '%x;', $_ * 2654435761 % 4294967296 for 1 .. 20000;
	print join(' ', map { "$_=$count{$_}" } @top), ' ', unpack('%32C*', $turned), ' ', scalar(grep { $_ } @sieve), ' ',
		scalar(keys %grid), ' ', length $line, ' ', scalar(split /;/, $line), ' ', fib(17), "\n";
}
