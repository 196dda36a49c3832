use strict;
use warnings;

$| = 1;
my %count;
my $text = do { local (@ARGV, $/) = '/usr/share/common-licenses/GPL-3'; <> };
$count{lc $1}++ while $text =~ /\b([A-Za-z]{4,})\b/g;
my @top = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 5];
print "$_ $count{$_}\n" for @top;

my @sieve = (1) x 60000;
for (my $i = 2; $i * $i < @sieve; $i++) {
	next unless $sieve[$i];
	for (my $j = $i * $i; $j < @sieve; $j += $i) { $sieve[$j] = 0 }
}
print scalar(grep { $sieve[$_] } 2 .. $#sieve), " primes\n";

# fork, pipe, signals, alarm, eval and die
my $got = 0;
local $SIG{USR1} = sub { $got++ };
kill USR1 => $$ for 1 .. 50;
print "signals $got\n";
pipe my $read, my $write or die;
if (!fork) { close $read; print $write join(',', map { $_ ** 2 } 1 .. 10), "\n"; exit 3 }
close $write;
print "child said ", scalar <$read>;
wait;
print "child status ", $? >> 8, "\n";
my $r = eval { local $SIG{ALRM} = sub { die "timeout\n" }; alarm 1; select undef, undef, undef, 10; 1 };
print "alarm: $@";
my $out = `echo backquotes; exit 4`;
print $out, $? >> 8, "\n";

sub ackermann { my ($m, $n) = @_; no warnings 'recursion'; $m ? $n ? ackermann($m - 1, ackermann($m, $n - 1)) : ackermann($m - 1, 1) : $n + 1 }
print ackermann(2, 60), "\n";
my $s = join '', map { chr(97 + $_ * 7 % 26) } 1 .. 5000;
$s =~ s/([aeiou])([^aeiou]+)/\U$1\E$2/g;
print unpack('%32C*', $s), " ", length($s), " ", ($s =~ tr/A-Z//), "\n";
printf "%.10f %s\n", atan2(1, 1) * 4, join ' ', sort { $a <=> $b } map { int(100 * sin $_) } 1 .. 10;
exit 5;
