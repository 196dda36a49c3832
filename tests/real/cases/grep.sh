# -P uses PCRE2's just-in-time compiler; the others DFA and back-references.
gpl=/usr/share/common-licenses/GPL-3
for i in {1..40}; do cat $gpl; done >big
translated grep -P -c '(?<=\bthe )(?!program)\w+ing\b' big
translated grep -P -o '(\w)(\w)(\w)\3\2\1' big | sort | uniq -c
translated grep -P -i '^(?:(?=.*free)(?=.*software).*)$' $gpl
translated grep -E -c '(copy|distribut|modif)(y|e|ing|ed)' big
translated grep -F -w -c 'License' big
translated grep -E '(.)\1(.)\2' $gpl
translated grep -rl --include='*.h' 'struct sockaddr_in6' /usr/include/netinet /usr/include/linux | sort
report translated grep -q nothingtofind $gpl
report translated grep -P '(' $gpl
translated grep -z -c . /proc/self/cmdline
