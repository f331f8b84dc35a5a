"""A certificate for `localhost` that signs itself, and its key: for tests alone, valid for a hundred years."""

from __future__ import annotations

CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBnDCCAUGgAwIBAgIUWU3WmT3ZyiWibY5I6PdvYtzh3v0wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDIyNTYwOVoYDzIxMjYxMTA2
MjI1NjA5WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQEFmP3IGWNrWLlL92tH2LNuH8Z7HOvFhgcW31naiJramb3M/3C0UVl
VathkinR2qfCLcawc3QVWOTqAbahTrDgo28wbTAdBgNVHQ4EFgQUIiZIozjZA4rY
8ymBS3RfZtBnki8wHwYDVR0jBBgwFoAUIiZIozjZA4rY8ymBS3RfZtBnki8wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSQAwRgIhALPTwAYJ8C8PWI/AgzBRoEDw3pkAGKbkd9LgLhcwhI+vAiEA
gXKfEAurxF6SEIe/eQtRpgzVFZiVbOh9jf3VfbwIDXU=
-----END CERTIFICATE-----
"""

# It protects nothing: it has been public since it was made.
PRIVATE_KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg5qX0JBFY5/bsITXu
GGbXWfzJPkoqx3Tdj2JduUp2ZEGhRANCAAQEFmP3IGWNrWLlL92tH2LNuH8Z7HOv
FhgcW31naiJramb3M/3C0UVlVathkinR2qfCLcawc3QVWOTqAbahTrDg
-----END PRIVATE KEY-----
"""
