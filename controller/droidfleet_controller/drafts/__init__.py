"""Drafts on the controller's side: their records and logs, and the designer's ports over this fleet.

`record` (a draft) and `log` (what its exploration wrote; `followers`, `pictures`) stand on the database and the files;
`phones`, `plan_check` and `approvals` are what the designer asks; `plans` makes documents of an accepted draft. Nothing
runs here by itself.
"""
