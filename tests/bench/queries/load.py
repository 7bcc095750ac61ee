# The tables and indexes of index.db, filled by json and sqlite3 as one would.
import json, sqlite3, sys

ledger, like, path = sys.argv[1:]
ddl = sqlite3.connect(like).execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
db = sqlite3.connect(path)
db.executescript("PRAGMA page_size=16384; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-49152;")
for kind, name, sql in ddl:
    if kind == "table":
        db.execute(sql)
columns = [c[1] for c in db.execute("PRAGMA table_info(tool_calls)") if c[1] != "joined"]
places = []


def rows():
    offset = 0
    with open(ledger, "rb") as f:
        for place, line in enumerate(f):
            row = json.loads(line)
            places.append((place, offset))
            offset += len(line)
            yield [json.dumps(v) if isinstance(v, (list, dict)) else v for v in map(row.get, columns)] + [place]


db.executemany("INSERT INTO tool_calls (%s, rowid) VALUES (%s)" % (", ".join(columns), ", ".join("?" * (len(columns) + 1))), rows())
db.executemany("INSERT INTO offsets VALUES (?, ?)", places)
for kind, name, sql in ddl:
    if kind in ("index", "view"):
        db.execute(sql)
db.commit()
