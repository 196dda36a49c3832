translated perl "$programs/mix.pl"
echo "status $?"
translated perl -MDigest::SHA=sha256_hex -MMIME::Base64 -MStorable=dclone -MPOSIX=floor,strftime -MTime::HiRes=usleep \
	-e 'print sha256_hex("x" x 1e6), " ", encode_base64("hello"), floor(3.7), " ", strftime("%F", gmtime(0)), "\n"'
translated perl -Mthreads -Mthreads::shared -e 'my $n :shared = 0; my @t = map { threads->create(sub { for (1..500) { lock($n); $n++ } }) } 1..4; $_->join for @t; print "$n\n"'
report translated perl -e 'die "dying\n"'
