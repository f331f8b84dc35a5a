"""The bus: subjects, stream configurations, message models, and the supervised NATS connection.

Subjects and message shapes live here and nowhere else. The only package that imports ``nats``.
"""
