"""Tasks that were written for other programs, made into protocol v1.

Data passes ``file -> sources (which form is it?) -> generic or maestro -> building (ids, the project's validator) ->
Imported``. An import is whole or refused: what has no counterpart is listed, never dropped. Pure; only the function
that reads other flows of a Maestro flow is given from outside.
"""
