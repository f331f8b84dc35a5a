"""What keeps a fleet's record whole: backups and putting one back, making the broker's content anew, and checks.

Owns the files of backups and the rules of a restore. Never decides what an agent does: that stays with `dispatch`,
which goes by what stands in the database afterwards.
"""
