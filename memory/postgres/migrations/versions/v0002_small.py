"""The short lists of a tenant (keys, blocked people), and conversations that programs opened by name."""

from alembic import op

revision = "0002"
down_revision = "0001"

# `lists_at` numbers the changes of lists over all tenants: what everybody may see is that a tenant's lists changed, and
# nothing of what is in them. Names and ids are as in the step before; `used` is milliseconds since 1970.
TABLES = """
ALTER TABLE chat_chat.tenants ADD COLUMN lists_at bigint NOT NULL DEFAULT 0;
CREATE INDEX tenants_lists_at ON chat_chat.tenants (lists_at);

CREATE TABLE chat_chat.lists (
    tenant text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, record text NOT NULL,
    PRIMARY KEY (tenant, name)
);

CREATE TABLE chat_chat.conversations (
    tenant text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL, user_id text COLLATE "C" NOT NULL,
    used bigint NOT NULL, record text NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX conversations_of ON chat_chat.conversations (tenant, user_id);
CREATE INDEX conversations_used ON chat_chat.conversations (tenant, used DESC, id);
"""

OF_A_TENANT = ("lists", "conversations")

WALL = """
ALTER TABLE chat_chat.{table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE chat_chat.{table} FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON chat_chat.{table}
    USING (tenant = current_setting('chat_chat.tenant', true))
    WITH CHECK (tenant = current_setting('chat_chat.tenant', true));
"""

# Also where somebody else than the maker of the first tables makes these.
ROLE = """
DO $$
BEGIN
    GRANT SELECT, INSERT, UPDATE, DELETE ON chat_chat.lists, chat_chat.conversations TO chat_chat_app;
EXCEPTION WHEN undefined_object THEN NULL;
END
$$;
"""


def upgrade() -> None:
    op.execute(TABLES)
    for table in OF_A_TENANT:
        op.execute(WALL.format(table=table))
    op.execute(ROLE)


def downgrade() -> None:
    op.execute("DROP TABLE chat_chat.lists, chat_chat.conversations")
    op.execute("ALTER TABLE chat_chat.tenants DROP COLUMN lists_at")
