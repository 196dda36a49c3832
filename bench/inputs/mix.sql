create table item(id integer primary key, name text, kind int, price real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
	insert into item select i, printf('item-%06d-%x', i, i * 7919), i * 31 % 211, (i * 13 % 100003) / 7.0 from n;
create index by_kind on item(kind, price);
create index by_name on item(name);
select kind, count(*), round(sum(price), 3) from item group by kind order by 3 desc limit 5;
select count(*), round(sum(a.price - b.price), 3) from item a join item b on a.kind = b.kind and b.id = a.id + 211;
select id, name from item where name like '%9ab%' order by price desc limit 5;
select kind, max(r) from (select kind, rank() over (partition by kind order by price) r from item) group by kind order by 2 desc, 1 limit 3;
update item set price = price * 1.5 where kind % 3 = 0;
delete from item where id % 7 = 0;
select count(*), round(sum(price), 3), sum(length(name)) from item;
with recursive grid(x, y) as (select 0, 0 union all select (x + 1) % 80, y + (x = 79) from grid where y < 40),
	m(x, y, i, a, b) as (select x, y, 0, 0.0, 0.0 from grid
		union all select x, y, i + 1, a * a - b * b + x / 30.0 - 2, 2 * a * b + y / 20.0 - 1 from m where i < 25 and a * a + b * b < 4)
	select count(*), sum(i) from m;
