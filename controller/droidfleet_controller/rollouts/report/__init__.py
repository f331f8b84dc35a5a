"""The report of a rollout as a file: JSON for programs, CSV for spreadsheets, one HTML page for people.

It may be had at any time. It is written page by page as it is read, so that ten thousand phones fit in little memory;
of a rollout that goes on, each page is as things were when it was read. `service.Reports` is the door, `material`
reads, the forms write. What phones and people have said is data here: never markup, never a formula.
"""
