translated sqlite3 data.db <"$programs/load.sql" && md5sum <data.db
translated sqlite3 data.db 'pragma integrity_check; select count(*), sum(length(name)) from item;'
translated sqlite3 -json data.db "select kind, count(*) n, avg(price) p from item group by kind order by n desc limit 3"
translated sqlite3 data.db .dump | md5sum
translated sqlite3 copy.db "attach 'data.db' as d; create table item as select * from d.item where id % 3 = 0; vacuum;" && md5sum <copy.db
report translated sqlite3 data.db 'select nothing from item' 2>&1
