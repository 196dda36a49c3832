pragma journal_mode = wal;
create table item(id integer primary key, name text, kind int, price real);
begin;
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
	insert into item select i, printf('item-%05d-%x', i, i * 7919), i * 31 % 17, (i * 13 % 1009) / 7.0 from n;
commit;
create index by_kind on item(kind, price);
select kind, count(*), round(sum(price), 3) from item group by kind having count(*) > 1176;
select a.id, b.id from item a join item b on a.kind = b.kind and a.price = b.price and a.id < b.id order by a.id, b.id limit 5;
select id, rank() over (partition by kind order by price desc, id) r from item order by r, id limit 5;
update item set name = upper(name) where kind = 3;
delete from item where kind = 5 and price > 100;
create virtual table text using fts5(body);
insert into text select name || ' ' || kind from item where id < 3000;
select count(*) from text where text match 'item AND 7';
select json_group_array(id) from (select id from item where name like '%ff%' order by id limit 4);
with recursive m(x, y, i, cx, cy) as (
	select 0.0, 0.0, 0, -0.1, 0.3 union all select x * x - y * y + cx, 2 * x * y + cy, i + 1, cx, cy from m where i < 3000)
	select round(x, 12), round(y, 12) from m where i = 3000;
pragma wal_checkpoint(truncate);
pragma journal_mode = delete;
