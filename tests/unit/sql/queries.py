"""A small shop in the namespace `s`, and queries over it in all the shapes the engine knows."""

TABLES = {
    "orders": "id int, customer int, amount decimal(10,2), day date, ts timestamp, note text,"
    " tags list<text>, addr struct<city: text, zip: int>, weight double, urgent boolean",
    "customers": "id int, name text, country text, since date",
    "prices": "symbol text, ts timestamp, price double",
}
ROWS = {
    "orders": """
        (1, 1, 10.00, '2024-01-01', '2024-01-01 10:00+00', 'first', ['a', 'b'],
            {'city': 'Ulm', 'zip': 1}, 1.5, true),
        (2, 1, 25.50, '2024-01-02', '2024-01-02 11:00+00', NULL, ['b'],
            {'city': 'Rome', 'zip': 2}, 2.5, false),
        (3, 2, 99.99, '2024-02-01', '2024-02-01 12:00+00', 'a_b', [], NULL, NULL, NULL),
        (4, NULL, 0.01, NULL, NULL, 'a%b\\c', NULL, {'city': NULL, 'zip': 4}, 'NaN', true),
        (5, 3, NULL, '2024-03-31', '2024-03-31 23:59:59+00', 'last', ['c', NULL],
            {'city': 'Oslo', 'zip': NULL}, -1, false),
        (6, 9, 10.00, '2023-12-31', '2023-12-31 00:00+00', 'Last', ['a'],
            {'city': 'Ulm', 'zip': 6}, 0, true)""",
    "customers": """
        (1, 'Ada', 'UK', '2020-01-01'), (2, 'Bob', NULL, '2021-06-01'),
        (3, 'Cyd', 'NO', NULL), (4, 'Dan', 'UK', '2024-01-01'), (NULL, 'Nobody', 'XX', NULL)""",
    "prices": """
        ('x', '2024-01-01 00:00+00', 1.0), ('x', '2024-01-02 00:00+00', 2.0),
        ('y', '2024-01-15 00:00+00', 3.0), ('y', NULL, 4.0), ('x', '2024-03-01 00:00+00', NULL)""",
}

# Each gives the same rows in any order of the table's rows.
QUERIES = [
    "SELECT * FROM s.orders",
    "FROM s.orders",
    "FROM s.orders SELECT id, amount WHERE amount > 5",
    "TABLE s.customers",
    "SELECT o.* FROM s.orders AS o WHERE o.id IN (1, 2, 99)",
    "SELECT * EXCLUDE (tags, addr) FROM s.orders WHERE urgent",
    "SELECT * REPLACE (amount * 2 AS amount) FROM s.orders",
    "SELECT * RENAME (id AS order_id) FROM s.orders",
    "SELECT COLUMNS('^(id|amount)$') FROM s.orders",
    "SELECT max(COLUMNS(* EXCLUDE (tags, addr, urgent))) FROM s.orders",
    "SELECT COLUMNS(lambda c: c LIKE 'a%') FROM s.orders",
    "SELECT count(*) FROM s.orders WHERE day BETWEEN '2024-01-01' AND DATE '2024-01-31'",
    "SELECT count(*), sum(amount) FROM s.orders WHERE day >= '2024-01-15' OR amount IS NULL",
    "SELECT sales.id FROM s.orders sales",
    "SELECT s.orders.id, orders.amount FROM s.orders WHERE s.orders.amount < 20",
    "SELECT orders FROM s.orders WHERE id = 1",
    "SELECT o FROM s.orders o WHERE o.id < 3",
    "SELECT addr.city, orders.addr.zip FROM s.orders WHERE addr.city = 'Ulm'",
    "SELECT addr.* FROM s.orders o WHERE o.addr.zip >= 2",
    "SELECT addr['city'], tags[1], tags[1:1], tags[-1] FROM s.orders",
    "SELECT id, unnest(tags) AS tag FROM s.orders",
    "SELECT id, tag FROM s.orders, unnest(tags) AS t(tag) WHERE id < 3 AND tag = 'b'",
    "SELECT id, tag FROM s.orders o CROSS JOIN LATERAL (SELECT unnest(o.tags) AS tag)",
    (
        "SELECT o.id, l.n FROM s.orders o, LATERAL (SELECT count(*) AS n FROM s.customers c"
        " WHERE c.id = o.customer) l"
    ),
    "SELECT [x + 1 FOR x IN [1, 2, 3] IF x > 1], id FROM s.orders",
    "SELECT list_transform(tags, lambda x, i: upper(x) || i) FROM s.orders",
    "SELECT list_filter(tags, lambda t: t = 'a') FROM s.orders",
    "SELECT list_reduce([1, 2, 3], lambda a, b: a + b), {'a': id, 'b': [id]} FROM s.orders",
    "SELECT MAP {'k': id}, struct_pack(x := id, y := note) FROM s.orders",
    (
        "SELECT id, row_number() OVER (PARTITION BY customer ORDER BY id) AS n FROM s.orders"
        " QUALIFY n = 1"
    ),
    (
        "SELECT id, sum(amount) OVER w FROM s.orders"
        " WINDOW w AS (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES)"
    ),
    "SELECT id, lag(amount IGNORE NULLS) OVER (ORDER BY id) FROM s.orders WHERE id > 1",
    (
        "SELECT avg(id) OVER (ORDER BY day RANGE BETWEEN INTERVAL 7 DAYS PRECEDING AND CURRENT ROW)"
        " FROM s.orders"
    ),
    "SELECT count(*) FILTER (WHERE amount > 10), list(id ORDER BY id) FROM s.orders",
    "SELECT customer, day, count(*) FROM s.orders GROUP BY GROUPING SETS ((customer), (day), ())",
    "SELECT customer, sum(amount), grouping(customer) FROM s.orders GROUP BY ROLLUP (customer)",
    "SELECT customer, urgent, count(*) FROM s.orders GROUP BY CUBE (customer, urgent)",
    "SELECT customer, sum(amount) FROM s.orders GROUP BY ALL ORDER BY ALL",
    "SELECT customer, sum(amount) AS total FROM s.orders GROUP BY customer HAVING total > 20",
    "SELECT DISTINCT ON (customer) customer, id FROM s.orders ORDER BY customer, id",
    "SELECT * FROM s.orders ORDER BY id DESC NULLS LAST LIMIT 2 OFFSET 1",
    "SELECT id FROM s.orders ORDER BY id LIMIT 50%",
    "PIVOT s.orders ON urgent USING sum(amount) GROUP BY customer",
    "SELECT * FROM s.orders PIVOT (count(id) FOR urgent IN (true, false) GROUP BY customer)",
    "SELECT * FROM (PIVOT s.orders ON urgent USING count(*) GROUP BY day) ORDER BY day",
    "UNPIVOT (SELECT id, customer, weight FROM s.orders) ON customer, weight INTO NAME n VALUE v",
    "SELECT * FROM (SELECT id, customer FROM s.orders) UNPIVOT (v FOR n IN (id, customer))",
    "SUMMARIZE s.customers",
    "DESCRIBE SELECT * FROM s.customers",
    "SELECT column_name FROM (DESCRIBE s.customers)",
    "SELECT * FROM s.orders o JOIN s.customers c ON o.customer = c.id AND c.country = 'UK'",
    "SELECT * FROM s.orders o LEFT JOIN s.customers c ON o.customer = c.id AND c.country = 'UK'",
    "SELECT * FROM s.orders o LEFT JOIN s.customers c ON o.customer = c.id WHERE c.country IS NULL",
    (
        "SELECT * FROM s.orders o RIGHT JOIN s.customers c ON o.customer = c.id AND o.amount > 20"
        " WHERE o.id IS NULL"
    ),
    (
        "SELECT o.id, c.name FROM s.orders o FULL OUTER JOIN s.customers c ON o.customer = c.id"
        " WHERE c.country = 'UK' OR o.id > 3"
    ),
    "SELECT name FROM s.customers c ANTI JOIN s.orders o ON o.customer = c.id AND c.country = 'UK'",
    "SELECT name FROM s.customers c SEMI JOIN s.orders o ON o.customer = c.id WHERE country = 'UK'",
    (
        "SELECT o.id, p.price FROM s.orders o ASOF JOIN s.prices p ON o.ts >= p.ts"
        " WHERE p.price > 1 AND o.id < 4"
    ),
    "SELECT o.id, p.price FROM s.orders o ASOF LEFT JOIN s.prices p ON o.ts >= p.ts",
    (
        "SELECT a.id, b.name FROM (FROM s.orders ORDER BY id) a POSITIONAL JOIN"
        " (FROM s.customers ORDER BY name) b"
    ),
    "SELECT id, name FROM s.customers NATURAL JOIN (SELECT id FROM s.orders)",
    "SELECT id, amount, name FROM s.orders JOIN s.customers USING (id) WHERE id = 2",
    "SELECT id, name FROM s.orders LEFT JOIN s.customers USING (id) WHERE id > 3",
    "SELECT id, name FROM s.orders RIGHT JOIN s.customers USING (id) WHERE id > 3 OR id IS NULL",
    "SELECT * FROM s.orders o, s.customers c WHERE o.customer = c.id AND since >= '2021-01-01'",
    "WITH o AS (SELECT * FROM s.orders WHERE amount > 5) SELECT 1 FROM o JOIN o AS p USING (id)",
    (
        "WITH o AS MATERIALIZED (FROM s.orders), c(k, n) AS (SELECT id, name FROM s.customers)"
        " SELECT id, n FROM o, c WHERE customer = k AND id > 1"
    ),
    (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3)"
        " SELECT n, id FROM r JOIN s.orders ON n = id"
    ),
    "WITH orders AS (SELECT * FROM s.orders WHERE id = 1) SELECT * FROM orders",
    "SELECT id FROM s.orders UNION ALL BY NAME SELECT name, id FROM s.customers",
    "SELECT id FROM s.orders EXCEPT SELECT id FROM s.customers",
    "(SELECT id FROM s.orders WHERE id > 2) INTERSECT ALL (SELECT id FROM s.customers)",
    "SELECT id FROM s.orders WHERE customer IN (SELECT id FROM s.customers WHERE country = 'UK')",
    "SELECT id FROM s.orders o WHERE NOT EXISTS (FROM s.customers c WHERE c.id = o.customer)",
    "SELECT id, (SELECT name FROM s.customers c WHERE c.id = customer) FROM s.orders",
    "SELECT id FROM s.orders WHERE amount > ALL (SELECT 5 FROM s.customers)",
    "SELECT ARRAY(SELECT id FROM s.customers ORDER BY id), count(*) FROM s.orders",
    (
        "SELECT CASE WHEN amount > 20 THEN 'big' WHEN amount IS NULL THEN '?' ELSE 'small' END"
        " FROM s.orders WHERE note LIKE 'a\\_b'"
    ),
    "SELECT id FROM s.orders WHERE note LIKE 'a!_b' ESCAPE '!' OR note ILIKE 'last'",
    "SELECT id FROM s.orders WHERE note LIKE 'a%b\\c' AND note NOT LIKE 'x%'",
    "SELECT id FROM s.orders WHERE note SIMILAR TO '.*st' AND note ~ 'st' OR note GLOB 'f*'",
    "SELECT id FROM s.orders WHERE weight > 1 AND weight = 'NaN'",
    "SELECT id FROM s.orders WHERE ts >= '2024-01-02' AND ts < TIMESTAMPTZ '2024-02-01 12:00+00'",
    "SELECT id FROM s.orders WHERE day = '2024-01-02 10:00:00'",
    "SELECT id FROM s.orders WHERE day < DATE '2024-02-29' + INTERVAL 1 MONTH",
    "SELECT id FROM s.orders WHERE amount = 10 AND amount <> 25.5 AND NOT (id = 7)",
    "SELECT id FROM s.orders WHERE (id, customer) IN ((1, 1), (2, 5))",
    "SELECT id FROM s.orders WHERE id = ANY ([1, 2]) AND day IS NOT DISTINCT FROM '2024-01-01'",
    "SELECT amount AS id FROM s.orders WHERE id = 2",
    "SELECT amount AS cost FROM s.orders WHERE cost > 20",
    "SELECT total: sum(amount), n: count(*) FROM o: s.orders",
    "SELECT id::VARCHAR || '-' || note, TRY_CAST(note AS INT), day + 1, @id FROM s.orders",
    "SELECT e'a\\'b', $$it's$$, x'41', 1_000, 1e3, .5, 'x;y' FROM s.customers -- comment; 'x\n",
    "SELECT /* a /* nested */ comment */ id FROM s.orders WHERE id = 1",
    'SELECT `id`, "customer" AS "my ""c""" FROM `s`."orders"',
    "SELECT extract(year FROM day), day.strftime('%Y'), date_trunc('month', ts) FROM s.orders",
    "SELECT x.i, o.id FROM range(1, 3) AS x(i) JOIN s.orders o ON o.id = x.i",
    "SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v(id, t) JOIN s.customers USING (id)",
    "VALUES (1, 2), (3, 4)",
    (
        "SELECT o.id FROM (s.orders o JOIN s.customers c ON o.customer = c.id)"
        " LEFT JOIN s.prices p ON p.ts = o.ts WHERE c.country = 'UK'"
    ),
    "SELECT any_value(name), first(name ORDER BY name), arg_max(name, id) FROM s.customers",
    "SELECT quantile_cont(amount, 0.5), mode(customer), approx_count_distinct(id) FROM s.orders",
    "SELECT json_extract(to_json(addr), '$.city') ->> '$', addr::JSON -> 'city' FROM s.orders",
    "SELECT id IS NULL, note NOTNULL, urgent IS TRUE, note COLLATE NOCASE = 'LAST' FROM s.orders",
    "SELECT if(id > 1, 'a', 'b'), coalesce(note, '-'), ifnull(weight, 0), id // 2 FROM s.orders",
    "SELECT count(DISTINCT customer), string_agg(note, ',' ORDER BY note) FROM s.orders",
    "SELECT current_date, id FROM s.orders WHERE current_date > DATE '2000-01-01'",
    "SELECT unnest({'a': id, 'b': note}) FROM s.orders",
    "SELECT #1, #2 FROM s.customers",
    "SELECT c.name FROM s.customers c(ident) WHERE ident = 1",
    "SELECT i, name FROM s.customers AS c(i, name, country, since) WHERE i = 1",
    "SELECT DISTINCT country FROM s.customers FETCH FIRST 10 ROWS ONLY",
    "SELECT s.customers.id, c2.id FROM s.customers, s.customers c2 WHERE s.customers.id < c2.id",
    "SELECT generate_series(1, 2), id FROM s.orders",
    "SELECT * FROM s.customers WHERE id = (SELECT max(id) FROM s.customers) AND 1 = 1",
    "SELECT id FROM s.orders WHERE TRUE AND (id = 1 OR (id = 2 AND amount > 1)) IS NOT FALSE",
]
# Answers differ from run to run; they must be read and keep their text.
CHANGING = [
    "SELECT * FROM s.orders USING SAMPLE 2 ROWS",
    "SELECT * FROM s.orders TABLESAMPLE reservoir(20%) REPEATABLE (42) WHERE id = 1",
    "SELECT * FROM s.orders USING SAMPLE 10 PERCENT (bernoulli) WHERE id = 1",
    "SELECT random(), gen_random_uuid(), now() FROM s.orders LIMIT 1",
    "SELECT * FROM s.orders LIMIT 1",
]
