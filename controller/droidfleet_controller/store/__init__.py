"""The controller's database: schema, migrations, one transaction at a time, and a repository module per aggregate.

Repositories take an open connection and return records of the deciding packages; they never decide and never commit.
The database is the record of the fleet; the broker is rebuilt from it.
"""
