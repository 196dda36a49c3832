# sh scripts started through #!, by name and by exec; here documents, traps, arithmetic.
cat >script <<'END'
#!/bin/sh -e
trap 'echo bye' EXIT
trap 'echo usr1' USR1
kill -USR1 $$
i=0
while [ $i -lt 3000 ]; do i=$((i + 1)); done
echo "$0 $# $* $i"
case $1 in a*) echo first ;; *) echo other ;; esac
(exit 4) || echo "subshell $?"
exec sh -c 'echo "exec $0 $1"; exit 9' zero one
END
chmod +x script
report translated ./script abc 'd e'
report translated --children ./script xyz
report translated sh script
printf '#!/usr/bin/env python3\nimport sys\nprint(sys.argv)\n' >py && chmod +x py
report translated ./py 1 2
