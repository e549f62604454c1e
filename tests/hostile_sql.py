"""What a stranger would try with SQL of their own, and how each attempt has to end.

`refused`: an error of status 400, 403 or 404 before anything is done. `cut`: ended by a limit of time or of
memory. `empty`: answered, and nothing that matters is in the answer or has happened. The `!` stands for a file
name in a folder that the test looks at afterwards.
"""

from __future__ import annotations

REFUSED = """
attach database '!' as stolen
attach ':memory:' as scratch
detach main
vacuum
vacuum into '!'
select 1; vacuum into '!'
select 1; attach '!' as x
/* harmless */ attach '!' as x
-- harmless\\nattach '!' as x
select load_extension('!')
select load_extension('!', 'entry')
select fts3_tokenizer('simple')
select fts3_tokenizer('simple', x'4141414141414141')
select readfile('!')
select writefile('!', 'x')
select edit('x', 'sh -c "touch !"')
select system('touch !')
select eval('delete from messages')
select * from fsdir('/')
select * from sqlite_dbpage
select * from dbstat
select * from zipfile('!')
select * from csv('!')
select sqlite_compileoption_used('x') from load_extension
pragma writable_schema = on
pragma writable_schema = reset
pragma journal_mode = delete
pragma journal_mode = off
pragma wal_checkpoint(truncate)
pragma temp_store_directory = '/'
pragma data_store_directory = '/'
pragma temp_store = file
pragma query_only = off
pragma trusted_schema = on
pragma hard_heap_limit = 0
pragma soft_heap_limit = 0
pragma mmap_size = 1000000000000
pragma cache_size = 100000000
pragma cache_spill = off
pragma threads = 64
pragma busy_timeout = 1000000
pragma locking_mode = exclusive
pragma key = 'x'
pragma rekey = 'x'
pragma user_version = 99
pragma schema_version = 99
pragma application_id = 99
pragma foreign_keys = off
pragma optimize
pragma incremental_vacuum
pragma shrink_memory
pragma integrity_check; delete from messages
select * from pragma_wal_checkpoint
select * from pragma_optimize
select * from pragma_incremental_vacuum
select * from pragma_journal_mode('delete')
select * from pragma_writable_schema(1)
select * from pragma_query_only(0)
select * from pragma_hard_heap_limit(0)
select * from pragma_soft_heap_limit(0)
select * from pragma_shrink_memory
insert into messages (content) values ('x')
insert into messages_fts(messages_fts) values ('delete-all')
insert into messages_fts(messages_fts) values ('rebuild')
insert into messages_fts(messages_fts, rank) values ('merge', 500)
insert into messages_fts(messages_fts, rank) values ('rank', 'bm25(10.0)')
insert into sessions (id) values ('x') returning *
insert into sqlite_master values ('table', 'x', 'x', 0, 'create table x (a)')
replace into schema_version values (99)
with x as (select 1) insert into schema_version select 99 from x
with x as (select id from messages) delete from messages where id in x
with x as (select 1) update messages set content = '' returning *
with recursive x(i) as (select 1) replace into schema_version select i from x
update messages set content = ''
update sqlite_master set sql = ''
delete from messages
delete from messages where 1 limit 1
delete from messages returning content
explain delete from messages
explain query plan delete from messages
create table x (a)
create temp table x (a)
create temp table x as select * from messages
create temp view x as select 1
create temp trigger x after insert on messages begin select 1; end
create trigger x after insert on messages begin delete from messages; end
create virtual table x using fts5(a)
create virtual table temp.x using csv(filename='!')
create index x on messages (role)
drop table messages
drop view ledger_usage
drop view temp.ledger_messages
drop trigger messages_fts_insert
alter table messages add column x
alter table messages rename to x
reindex
analyze
begin
begin immediate
begin; delete from messages; commit
savepoint x
release x
rollback
commit
select '!' into outfile '!'
copy messages to '!'
select * from "file:!?mode=rwc"
select * from other.messages
select 1 union select load_extension('!')
select * from messages where load_extension('!')
select case when 1 then load_extension('!') end
select x'00' collate nothing
values (load_extension('!'))
select 1 where exists (select load_extension('!'))
select json_extract('{', '$')
select char(0) || load_extension('!')
"""

CUT = """
with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n
with recursive n(i) as (select 1 union all select i + 1 from n) select i from n where i < 0
with recursive n(i) as (select 1 union select i + 1 from n) select max(i) from n
select count(*) from messages a, messages b, messages c, messages d, messages e
select count(*) from messages a cross join messages b cross join messages c cross join messages d
select a.content || b.content x from messages a, messages b, messages c, messages d order by x desc
select distinct a.content || b.content || c.content from messages a, messages b, messages c, messages d order by 1
select group_concat(a.content || b.content) from messages a, messages b, messages c, messages d
select sum(count(*)) over (order by a.id) from messages a, messages b, messages c, messages d group by a.id
select count(*) from messages_fts a, messages_fts b, messages_fts c, messages_fts d
select count(*) from json_each((select json_group_array(a.id) from messages a, messages b, messages c, messages d))
select count(*) from messages a, messages b, messages c, messages d where a.content like '%' || b.content || '%'
select count(*) from messages a, messages b, messages c, messages d where a.content glob '*' || b.content || '*'
select max(length(hex(randomblob(1000000)))) from messages a, messages b, messages c
select hex(zeroblob(400000000))
select length(hex(zeroblob(400000000)))
select randomblob(900000000)
select quote(zeroblob(400000000))
select length(replace(hex(zeroblob(10000)), '0', hex(zeroblob(20000))))
select length(printf('%.*c', 900000000, 'x'))
select length(printf('%900000000d', 1))
select printf('%900000000s', 'x')
select length(group_concat(hex(zeroblob(1000000)))) from messages a, messages b
select length(json_group_array(hex(zeroblob(1000000)))) from messages a, messages b
select zeroblob(20000000) from messages
select hex(zeroblob(2000000)), hex(zeroblob(2000000)) from messages
with recursive n(x) as (select 'xx' union all select x || x from n) select length(x) from n
with recursive n(x) as (select zeroblob(1000000) union all select x || x from n) select max(length(x)) from n
with recursive n(i, x) as (select 1, hex(zeroblob(100000)) union select i + 1, x || i from n) select max(i) from n
"""

ENDLESS = """
select instr(hex(zeroblob(300000)), hex(zeroblob(150000)) || '1')
select hex(zeroblob(30000)) like '%' || hex(zeroblob(12000)) || '1'
"""
"""One step that nothing can end, some seconds long: answered when its time is over, while it goes on."""

EMPTY = """
select name from pragma_database_list where name not in ('main', 'temp')
select * from pragma_table_info('nothing')
select name from pragma_function_list where name in ('readfile', 'writefile', 'edit', 'eval')
select name from pragma_function_list where name in ('zipfile', 'fsdir', 'system', 'writefile_')
select * from sqlite_master where sql like '%nothing like it%'
select 1 where 0
select count(*) from messages where content like '%a%a%a%a%a%a%a%a%a%a%a%a%b' and 0
"""


def attempts(text: str) -> list[str]:
    """The attempts of one kind, one a line; `\\n` stands for the end of a line within one."""
    return [line.replace("\\n", "\n") for line in text.strip().split("\n")]


def too_deep() -> list[tuple[str, str]]:
    """Attempts that are too long to be written out, each with how it has to end."""
    return [
        ("refused", "select " + "(" * 3000 + "1" + ")" * 3000),
        ("refused", "select " + "- " * 1500 + "1"),
        ("refused", "select 1 " + "union all select 1 " * 600),
        ("refused", "select " + ",".join(["1"] * 3000)),
        ("refused", "select json('" + "[" * 4000 + "]" * 4000 + "')"),
        ("refused", "select abs(" * 1200 + "1" + ")" * 1200),
        ("empty", "select 1 where 0 in (" + ",".join(map(str, range(1, 9000))) + ")"),
    ]
