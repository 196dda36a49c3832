#!/bin/bash
# The servers suite: real servers under load are attached to, saved, let go of, and their recorder is killed. Not one request may be
# lost or answered wrongly: tests/servers/load knows every answer.
#
# PATTERN selects tests by name. SERVER_SECONDS (1): for how long each of them is attached to again and again.
set -uo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
PATTERN=${PATTERN:-*}
SERVER_SECONDS=${SERVER_SECONDS:-1}
need_launch || exit 2
new_work_directory
chmod 711 "$work"
export XDG_RUNTIME_DIR=$work/run
mkdir -m 700 "$XDG_RUNTIME_DIR"
mkdir "$work/temp"
chmod 777 "$work/temp"

wanted() {
	# shellcheck disable=SC2053
	[[ $1 == $PATTERN ]]
}

# Servers that mind are run by an ordinary user.
user=()
if [ "$(id -u)" -eq 0 ]; then
	user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
fi

# begin_load KIND ADDRESS CONNECTIONS [PIDS]: as $load, until end_load
begin_load() {
	rm -f "$work/load.out"
	"$root/tests/servers/load" "$@" >"$work/load.out" 2>"$work/load.err" &
	load=$!
	wait_until 60 grep -q ready "$work/load.out" || why="the load does not begin: $(tail -n1 "$work/load.err")"
}

end_load() {
	kill "$load" 2>/dev/null
	wait "$load" || why=${why:-"status $? of the load: $(tail -n1 "$work/load.err")"}
	[[ $(tail -n1 "$work/load.out") =~ ^[1-9][0-9]*\ requests$ ]] || why=${why:-"no requests: $(tail -n1 "$work/load.out")"}
}

attach() {
	rm -f "$work/it.bug" "$work/record.err"
	"$BUGNET" record --pid "$1" -o "$work/it.bug" </dev/null >"$work/record.out" 2>"$work/record.err" &
	recorder=$!
	wait_until 60 grep -q '^bugnet: recording process' "$work/record.err" || why=${why:-"cannot attach to $1: $(tail -n1 "$work/record.err")"}
}


# attack NAME PID...: attached to, saved, let go of, in turns; then the recorder of the last one is killed
attack() {
	local name=servers/$1 rounds=0 saved=0 end=$((SECONDS + SERVER_SECONDS)) target
	shift
	while [ -z "$why" ] && { [ $SECONDS -lt $end ] || [ $rounds -lt 2 ]; }; do
		target=${*:rounds % $# + 1:1}
		attach "$target"
		sleep 0.3
		rm -f "$work/saved.bug"
		if "$BUGNET" save -o "$work/saved.bug" "$target" >"$work/save.out" 2>&1; then saved=$((saved + 1)); else why=${why:-"cannot save: $(tail -n1 "$work/save.out")"}; fi
		sleep 0.1
		if [ $((rounds % 2)) -eq 0 ]; then
			"$BUGNET" detach "$target" >"$work/detach.out" 2>&1 || why=${why:-"cannot detach: $(tail -n1 "$work/detach.out")"}
		else
			kill -TERM "$recorder"
		fi
		wait "$recorder" || why=${why:-"the recorder ended with status $?: $(tail -n1 "$work/record.err")"}
		kill -0 "$load" 2>/dev/null || why=${why:-"the load ended: $(tail -n1 "$work/load.err")"}
		rounds=$((rounds + 1))
	done
	cp "$work/it.bug" "$work/whole.bug"
	for target; do
		[ -z "$why" ] || break
		attach "$target"
		sleep 0.3
		kill -KILL "$recorder"
		wait "$recorder" 2>/dev/null
	done
	sleep 0.5
	kill -0 "$load" 2>/dev/null || why=${why:-"the load ended behind a killed recorder: $(tail -n1 "$work/load.err")"}
	end_load
	if [ -n "$why" ]; then
		failed "$name" "$why" "$work/record.err"
		return
	fi
	ok "$name ($rounds rounds, $(tail -n1 "$work/load.out"))"
	expect_exact "$name-saved" "$work/saved.bug"
	expect_exact "$name-recorded" "$work/whole.bug"
}

# end_server NAME SIGNAL STATUS
end_server() {
	kill "-$2" "$server"
	wait "$server"
	local status=$?
	[ $status -eq "$3" ] || failed "servers/$1-end" "the server ended with status $status instead of $3"
}

if wanted memcached && command -v memcached >/dev/null; then
	why=
	memcached -u nobody -s "$work/temp/memcached.sock" -t 2 >"$work/server.out" 2>&1 &
	server=$!
	wait_until 30 test -S "$work/temp/memcached.sock"
	begin_load memcached "$work/temp/memcached.sock" 8
	attack memcached $server
	end_server memcached TERM 0
elif wanted memcached; then
	skipped servers/memcached "no memcached"
fi

if wanted redis && command -v redis-server >/dev/null; then
	why=
	redis-server --port 0 --unixsocket "$work/redis.sock" --save "" --appendonly no >"$work/server.out" 2>&1 &
	server=$!
	wait_until 30 test -S "$work/redis.sock"
	begin_load redis "$work/redis.sock" 8
	attack redis $server
	end_server redis TERM 0
elif wanted redis; then
	skipped servers/redis "no redis"
fi

# crash_redis COMMAND...: it runs redis-server, which is made to crash, and goes through its memory to report it; the status. Threads of
# jemalloc's own would work on that memory meanwhile, and crash it again natively, too.
crash_redis() {
	rm -f "$work/crash.sock"
	"$@" redis-server --port 0 --unixsocket "$work/crash.sock" --save "" --enable-debug-command yes --jemalloc-bg-thread no >"$work/server.out" 2>"$work/record.err" &
	server=$!
	wait_until 60 redis-cli -s "$work/crash.sock" ping >"$work/cli.out" 2>&1 || why=${why:-"it does not answer"}
	timeout 60 redis-cli -s "$work/crash.sock" debug segfault >>"$work/cli.out" 2>&1
	timeout 60 tail --pid=$server -f /dev/null || kill -KILL $server
	wait $server
	echo "status $?, $(grep -c 'FAST MEMORY TEST' "$work/server.out") test"
}

if wanted redis-crash && command -v redis-server >/dev/null; then
	why=
	natively=$(crash_redis 2>"$work/shell.err")
	recorded=$(crash_redis "$BUGNET" record -o "$work/crash.bug" 2>"$work/shell.err")
	[ "$natively" = 'status 139, 1 test' ] || why=${why:-"natively: $natively"}
	[ "$recorded" = "$natively" ] || why=${why:-"natively: $natively; recorded: $recorded"}
	"$BUGNET" info "$work/crash.bug" >"$work/info.out" 2>&1 || why=${why:-"$(tail -n1 "$work/info.out")"}
	grep -q '^end .*killed by SIGSEGV' "$work/info.out" || why=${why:-"$(grep '^end ' "$work/info.out")"}
	if [ -n "$why" ]; then failed servers/redis-crash "$why" "$work/record.err"; else ok servers/redis-crash; fi
	expect_exact servers/redis-crash-recorded "$work/crash.bug"
elif wanted redis-crash; then
	skipped servers/redis-crash "no redis"
fi

if wanted nginx && command -v nginx >/dev/null; then
	why=
	mkdir "$work/www"
	for page in 0 1 2 3; do
		perl -e 'print $ARGV[0] x 10 ** (1 + $ARGV[0])' $page >"$work/www/page$page"
	done
	cat >"$work/nginx.conf" <<END
$([ "$(id -u)" -ne 0 ] || echo 'user nobody nogroup;')
daemon off;
worker_processes 2;
pid $work/nginx.pid;
error_log $work/temp/error.log info;
events { worker_connections 128; }
http {
	access_log off;
	client_body_temp_path $work/temp/body; proxy_temp_path $work/temp/proxy; fastcgi_temp_path $work/temp/fastcgi;
	uwsgi_temp_path $work/temp/uwsgi; scgi_temp_path $work/temp/scgi;
	server { listen unix:$work/nginx.sock; root $work/www; }
}
END
	nginx -p "$work" -c "$work/nginx.conf" -e "$work/temp/error.log" >"$work/server.out" 2>&1 &
	server=$!
	wait_until 30 curl -sf --unix-socket "$work/nginx.sock" http://localhost/page0
	begin_load nginx "$work/nginx.sock" 8
	# shellcheck disable=SC2046
	attack nginx $(pgrep -P $server)
	end_server nginx QUIT 0
	! grep -E '\[(alert|emerg|crit|error)\]' "$work/temp/error.log" >"$work/complaints" || failed servers/nginx-log "nginx complained" "$work/complaints"
elif wanted nginx; then
	skipped servers/nginx "no nginx"
fi

if wanted postgres && bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1) && [ -x "$bin/postgres" ]; then
	why=
	mkdir -m 700 "$work/cluster"
	[ ${#user[@]} -eq 0 ] || chown nobody "$work/cluster"
	(cd / && HOME=$work/cluster "${user[@]}" "$bin/initdb" -D "$work/cluster/data" -A trust -U tester --no-sync --no-instructions --locale=C.UTF-8) >"$work/server.out" 2>&1
	(cd / && exec "${user[@]}" "$bin/postgres" -D "$work/cluster/data" -c listen_addresses= -c unix_socket_directories="$work/cluster" -c fsync=off -c autovacuum_naptime=1) >>"$work/server.out" 2>&1 &
	server=$!
	wait_until 60 "$bin/pg_isready" -q -h "$work/cluster" -U tester -d postgres
	begin_load postgres "$work/cluster/.s.PGSQL.5432" 4 "$work/pids"
	# Two that serve, and who forks them.
	# shellcheck disable=SC2046
	attack postgres $(head -n 2 "$work/pids") $server
	end_server postgres INT 0
	! grep -E 'PANIC|FATAL|ERROR|was terminated' "$work/server.out" | grep -v 'is starting up' >"$work/complaints" || failed servers/postgres-log "postgres complained" "$work/complaints"
elif wanted postgres; then
	skipped servers/postgres "no postgres"
fi
exit 0
