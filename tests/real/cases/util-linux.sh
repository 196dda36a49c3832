# Small tools that change what a process is: sessions, locks, limits, affinity, priorities, pseudo-terminals.
translated setsid -w sh -c 'ps -o sid= -p $$ | tr -d " " | grep -qx $$ && echo leader'
translated flock lock sh -c 'flock -n lock true; echo "locked $?"'
translated prlimit --nofile=77 sh -c 'ulimit -n'
translated taskset -c 0 nproc
translated nice -n 7 sh -c 'nice'
translated ionice -c 3 true; echo "status $?"
translated script -q -e -c 'tty | cut -c1-9; stty size; exit 5' /dev/null </dev/null | tr -d '\r'; echo "status ${PIPESTATUS[0]}"
translated script -q -e -c 'translated sh -c "test -t 1 && echo terminal"' /dev/null </dev/null | tr -d '\r'
translated setpriv --no-new-privs sh -c 'grep NoNewPrivs /proc/self/status | tr -s "[:blank:]" " "'
translated env -i PATH=/usr/bin:/bin sh -c 'env | grep -v -E "^(PWD|_|SHLVL|OLDPWD)="'
translated column -t <<<$'a bb ccc\ndddd e f'
translated hexdump -C /usr/share/common-licenses/BSD | tail -2
translated rev <<<abc
