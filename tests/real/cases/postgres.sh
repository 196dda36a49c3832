# initdb with the servers it starts, then the server with its processes and shared memory, as an ordinary user.
# timeout: 240
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
mkdir cluster && chmod 700 cluster
user=()
if [[ $EUID == 0 ]]; then
	chown nobody cluster
	user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
fi
port=$(free_port)
export HOME=$PWD/cluster PGHOST=127.0.0.1 PGPORT=$port PGUSER=tester PGDATABASE=postgres PGDATA=$PWD/cluster/data

"${user[@]}" translated --children "$bin/initdb" -A trust -U tester --no-sync --no-instructions --locale=C.UTF-8 >log 2>&1
echo "initdb $?"
"${user[@]}" "$bin/pg_controldata" | grep -E 'catalog version|cluster state'
"${user[@]}" translated --children "$bin/postgres" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off \
	-c max_parallel_workers_per_gather=2 -c jit=on -c jit_above_cost=0 -c logging_collector=off >>log 2>&1 &
server=$!
wait_for 60 "$bin/pg_isready" -q

query() { "$bin/psql" -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }
query <<'END'
create table item(id int primary key, name text, price numeric, tags jsonb);
insert into item select i, md5(i::text), i % 97 + 0.25, jsonb_build_object('n', i % 7) from generate_series(1, 5000) i;
create index on item(price);
analyze item;
select tags->>'n', count(*), sum(price) from item group by 1 order by 1;
select count(*) from item a join item b on a.price = b.price where a.id < 500;
select id, rank() over (order by price desc, id) from item order by 2 limit 3;
do $$ begin perform 1 / 0; exception when division_by_zero then raise notice 'caught'; end $$;
create function fib(n int) returns int language plpgsql as $$ begin if n < 2 then return n; end if; return fib(n - 1) + fib(n - 2); end $$;
select fib(15), md5(string_agg(name, '' order by id)) from item;
set min_parallel_table_scan_size = 0; set parallel_setup_cost = 0; set parallel_tuple_cost = 0;
select sum(length(name)) from item where name like '%a%';
begin; delete from item where id > 10; rollback;
select count(*) from item where name ~ '^[0-9]{4}';
END
query -c 'select nothing' 2>&1
"$bin/pgbench" -i -q -s 1 >/dev/null 2>&1; echo "pgbench -i $?"
"$bin/pgbench" -c 2 -j 2 -t 150 2>/dev/null | grep -E 'actually processed|failed'
query -c 'select count(*) from pgbench_history' -c 'vacuum analyze'
kill -INT "$(head -1 cluster/data/postmaster.pid)"
wait $server
echo "status $?"
"${user[@]}" "$bin/pg_controldata" | grep 'cluster state'
