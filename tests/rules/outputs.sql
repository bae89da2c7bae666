-- front: {materialization: table}

-- accepted: names of their own
SELECT url, count(*) AS n, x.amount FROM clicks x GROUP BY url, amount

-- refused: unnamed-column `count(*)`: an expression without a name
SELECT count(*) FROM clicks

-- refused: unnamed-column `upper(url)`
-- refused: duplicate-column `amount`
-- refused: reserved-column `_url`
SELECT upper(url), amount, user_id AS amount, url AS _url FROM clicks

-- refused: duplicate-column `b.* EXCEPT (country, parent, since)`: from two stars
SELECT a.code, b.* EXCEPT (country, parent, since) FROM raw.countries a JOIN raw.countries b ON a.code = b.parent
