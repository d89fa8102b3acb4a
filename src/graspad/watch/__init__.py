"""`graspad watch`: rows from standard input or a growing file, readings and incidents as JSON lines.

source.py   lines as they come
rows.py     from a line to a row
journal.py  what was written and how far it got: a watch that is killed and started again goes on as if nothing happened
run.py      the loop
"""
