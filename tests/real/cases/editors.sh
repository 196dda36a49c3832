# vim without a terminal, less, man (which puts its formatters under a seccomp filter), file, jq
cp /usr/share/common-licenses/GPL-3 text
translated vim.tiny -es -u NONE -i NONE -N -c '%s/\<the\>/THE/g' -c 'g/^$/d' -c 'sort n' -c '1,20!sort -r' -c 'wq' text; echo "status $?"
md5sum <text
translated less text | md5sum
cat >page.1 <<'END'
.TH PAGE 1 2020-01-01 tester
.SH NAME
page \- a manual page for the test
.SH DESCRIPTION
\fBBold\fR and \fIitalic\fR, a list and a table.
.IP one 4
First.
.IP two 4
Second.
END
MANWIDTH=70 report translated --children man -P cat -l page.1 2>/dev/null
translated groff -man -Tascii page.1 2>/dev/null | md5sum
translated file -b text page.1 /bin/true /etc/hostname | sed 's/BuildID.*=[0-9a-f]*/BuildID/'
translated jq -n -c '[range(2000)] | map({n: ., s: (. * . | tostring)}) | group_by(.n % 7) | map({k: .[0].n, t: (map(.n) | add), m: (map(.s | length) | max)}) | .[]'
translated jq -n '"aXbXc" | [match("[a-z]"; "g").string], (try error("x") catch .), ([limit(5; repeat(1))] | add)' -c
report translated jq . <<<'{"broken": '
