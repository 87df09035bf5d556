"""How the tables come to be what this version needs: Alembic's scripts. Only ever added to, never changed.

Two versions run side by side while one is replaced: a migration adds tables, columns and indexes; what an older version
still writes or reads goes in the release after the one that stopped needing it.
"""
