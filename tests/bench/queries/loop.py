import json, sys

n = 0
with open(sys.argv[1], "rb") as f:
    for line in f:
        if json.loads(line)["status"] == "error":
            n += 1
print(n)
