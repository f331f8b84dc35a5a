"""Runs one validated task against one phone: look, decide, act, verify (protocol section 3).

Data passes ``run`` (the task) ``-> steps/<action>`` (one executor an action) ``-> target`` (waits until the target is
there) ``-> look`` (one snapshot) and ``-> dispatch`` (the only place that tells the phone to do something). Everything
the engine knows of the world comes through the `Phone`, the `Clock` and the observer; it opens no file or connection.
"""
