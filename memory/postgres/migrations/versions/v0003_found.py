"""What the lists over a tenant are counted and searched by: made of the records, and filled by the questions that are
asked, so that a message writes none of it."""

from alembic import op

revision = "0003"
down_revision = "0002"

# `people.tallied` is the person's version that stands in the tallies: whose is another one is found by the index,
# whoever wrote it, also a version of ours that knows nothing of this. `taken` has what a person adds to the tallies,
# and whether their texts are in `texts` as they stand now. A text is found by its number: `postings` has, for each term
# and block of numbers, those that have it, two bytes each, which hardly shrink by compression. `catalogs` has a row of
# each tenant of whom anything was asked: its lock, the next number, whether everybody's texts were taken once, and by
# which form of the terms.
TABLES = """
ALTER TABLE chat_chat.people ADD COLUMN tallied bigint NOT NULL DEFAULT 0;
CREATE INDEX people_behind ON chat_chat.people (tenant, user_id) WHERE tallied <> version;

CREATE TABLE chat_chat.catalogs (
    tenant text COLLATE "C" PRIMARY KEY, next bigint NOT NULL DEFAULT 0, whole boolean NOT NULL DEFAULT false,
    form integer NOT NULL DEFAULT 0
);

CREATE TABLE chat_chat.taken (
    tenant text COLLATE "C" NOT NULL, user_id text COLLATE "C" NOT NULL, tally jsonb NOT NULL,
    searched boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, user_id)
);
CREATE INDEX taken_unsearched ON chat_chat.taken (tenant, user_id) WHERE NOT searched;

CREATE TABLE chat_chat.tallies (
    tenant text COLLATE "C" NOT NULL, facet text COLLATE "C" NOT NULL, number bigint NOT NULL,
    PRIMARY KEY (tenant, facet)
);

CREATE TABLE chat_chat.texts (
    tenant text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, number bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
    length integer NOT NULL, words text NOT NULL, terms text NOT NULL,
    PRIMARY KEY (tenant, kind, number)
);
CREATE UNIQUE INDEX texts_of ON chat_chat.texts (tenant, user_id, kind, id);

CREATE TABLE chat_chat.postings (
    tenant text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, term text COLLATE "C" NOT NULL,
    block bigint NOT NULL, numbers bytea NOT NULL,
    PRIMARY KEY (tenant, kind, term, block)
);
ALTER TABLE chat_chat.postings ALTER COLUMN numbers SET STORAGE EXTERNAL;
"""

OF_A_TENANT = ("catalogs", "taken", "tallies", "texts", "postings")

# As of the tables before; and for the role of their wall, where the default privileges are not those of who migrates.
WALL = """
ALTER TABLE chat_chat.{table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE chat_chat.{table} FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON chat_chat.{table}
    USING (tenant = current_setting('chat_chat.tenant', true))
    WITH CHECK (tenant = current_setting('chat_chat.tenant', true));
DO $$
BEGIN
    GRANT SELECT, INSERT, UPDATE, DELETE ON chat_chat.{table} TO chat_chat_app;
EXCEPTION WHEN undefined_object THEN NULL;
END
$$;
"""


def upgrade() -> None:
    op.execute(TABLES)
    for table in OF_A_TENANT:
        op.execute(WALL.format(table=table))


def downgrade() -> None:
    op.execute("DROP TABLE " + ", ".join(f"chat_chat.{table}" for table in OF_A_TENANT))
    op.execute("ALTER TABLE chat_chat.people DROP COLUMN tallied")
