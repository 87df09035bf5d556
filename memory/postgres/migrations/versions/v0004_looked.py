"""Up to whom a tenant's lists were compared with the people last: it goes on from there, some at a time."""

from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.execute("ALTER TABLE chat_chat.catalogs ADD COLUMN looked text COLLATE \"C\" NOT NULL DEFAULT ''")


def downgrade() -> None:
    op.execute("ALTER TABLE chat_chat.catalogs DROP COLUMN looked")
