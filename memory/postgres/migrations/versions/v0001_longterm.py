"""What is known of people and what was said: one row a record, the tenant first in every key and index."""

from alembic import op

revision = "0001"
down_revision = None

# Every name but a tenant's is kept as it stands in file names (memory.keys.escape): any id can be a key. `record`
# is the record itself as JSON in text: `jsonb` would refuse a NUL that somebody sent. The other columns are made of it
# for the lists; times are milliseconds since 1970. `rev` is the person's version that wrote the row, `place` its order.
TABLES = """
CREATE TABLE chat_chat.tenants (tenant text COLLATE "C" PRIMARY KEY);

CREATE TABLE chat_chat.people (
    tenant text COLLATE "C" NOT NULL, user_id text COLLATE "C" NOT NULL, named text,
    version bigint NOT NULL, cleared bigint NOT NULL, places bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen bigint NOT NULL DEFAULT 0, words text NOT NULL DEFAULT '', rest text NOT NULL,
    PRIMARY KEY (tenant, user_id)
);
CREATE INDEX people_seen ON chat_chat.people (tenant, seen DESC, user_id);

CREATE TABLE chat_chat.events (
    tenant text COLLATE "C" NOT NULL, user_id text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
    place bigint NOT NULL, rev bigint NOT NULL, listed boolean NOT NULL,
    at bigint NOT NULL, slot bigint NOT NULL, importance double precision NOT NULL, type text NOT NULL,
    words text NOT NULL, record text NOT NULL,
    PRIMARY KEY (tenant, user_id, id)
);
CREATE INDEX events_of ON chat_chat.events (tenant, user_id, rev);
CREATE INDEX events_at ON chat_chat.events (tenant, at DESC, user_id, id);
CREATE INDEX events_importance ON chat_chat.events (tenant, importance DESC, user_id, id);
CREATE INDEX events_id ON chat_chat.events (tenant, id);

CREATE TABLE chat_chat.facts (
    tenant text COLLATE "C" NOT NULL, user_id text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
    place bigint NOT NULL, rev bigint NOT NULL, listed boolean NOT NULL, fades bigint,
    created bigint NOT NULL, confidence double precision NOT NULL, used bigint NOT NULL,
    priority_rank smallint NOT NULL, current smallint NOT NULL, type text NOT NULL, priority text NOT NULL,
    scope text NOT NULL, agent text, words text NOT NULL, record text NOT NULL,
    PRIMARY KEY (tenant, user_id, id)
);
CREATE INDEX facts_of ON chat_chat.facts (tenant, user_id, rev);
CREATE INDEX facts_created ON chat_chat.facts (tenant, current, created DESC, user_id, id);
CREATE INDEX facts_confidence ON chat_chat.facts (tenant, current, confidence DESC, user_id, id);
CREATE INDEX facts_fades ON chat_chat.facts (tenant, fades);
CREATE INDEX facts_id ON chat_chat.facts (tenant, id);

CREATE TABLE chat_chat.episodes (
    tenant text COLLATE "C" NOT NULL, user_id text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
    place bigint NOT NULL, rev bigint NOT NULL, listed boolean NOT NULL,
    ended bigint NOT NULL, outcome text NOT NULL, agent text, words text NOT NULL, record text NOT NULL,
    PRIMARY KEY (tenant, user_id, id)
);
CREATE INDEX episodes_of ON chat_chat.episodes (tenant, user_id, rev);
CREATE INDEX episodes_ended ON chat_chat.episodes (tenant, ended DESC, user_id, id);
CREATE INDEX episodes_id ON chat_chat.episodes (tenant, id);

CREATE TABLE chat_chat.procedures (
    tenant text COLLATE "C" NOT NULL, user_id text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
    place bigint NOT NULL, rev bigint NOT NULL, listed boolean NOT NULL,
    created bigint NOT NULL, used bigint NOT NULL, type text NOT NULL, words text NOT NULL, record text NOT NULL,
    PRIMARY KEY (tenant, user_id, id)
);
CREATE INDEX procedures_of ON chat_chat.procedures (tenant, user_id, rev);
CREATE INDEX procedures_created ON chat_chat.procedures (tenant, created DESC, user_id, id);

CREATE TABLE chat_chat.said (
    tenant text COLLATE "C" NOT NULL, user_id text COLLATE "C" NOT NULL, place bigint GENERATED ALWAYS AS IDENTITY,
    agent text COLLATE "C" NOT NULL, conversation text COLLATE "C" NOT NULL, message_id text COLLATE "C",
    at bigint NOT NULL, fresh boolean NOT NULL, record text NOT NULL,
    PRIMARY KEY (tenant, user_id, place)
);
CREATE INDEX said_in ON chat_chat.said (tenant, user_id, agent, conversation, place DESC);
CREATE UNIQUE INDEX said_once ON chat_chat.said (tenant, user_id, agent, conversation, message_id);
CREATE INDEX said_at ON chat_chat.said (tenant, at);

CREATE TABLE chat_chat.forgotten (
    tenant text COLLATE "C" NOT NULL, who text COLLATE "C" NOT NULL, at double precision NOT NULL,
    PRIMARY KEY (tenant, who)
);
CREATE INDEX forgotten_at ON chat_chat.forgotten (tenant, at);
"""

OF_A_TENANT = ("people", "events", "facts", "episodes", "procedures", "said", "forgotten")

# The second wall. Whoever asks without saying for which tenant sees and writes nothing; that holds for the tables'
# owner too, and for a superuser once it has taken the role.
WALL = """
ALTER TABLE chat_chat.{table} ENABLE ROW LEVEL SECURITY;
ALTER TABLE chat_chat.{table} FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON chat_chat.{table}
    USING (tenant = current_setting('chat_chat.tenant', true))
    WITH CHECK (tenant = current_setting('chat_chat.tenant', true));
"""

# A role belongs to the whole server: another database of it may have made it already, or this user must not make any.
ROLE = """
DO $$
BEGIN
    CREATE ROLE chat_chat_app NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation OR insufficient_privilege THEN NULL;
END
$$;
DO $$
BEGIN
    IF NOT pg_has_role(current_user, 'chat_chat_app', 'MEMBER') THEN
        GRANT chat_chat_app TO CURRENT_USER;
    END IF;
EXCEPTION WHEN undefined_object OR insufficient_privilege OR unique_violation THEN NULL;
END
$$;
DO $$
BEGIN
    GRANT USAGE ON SCHEMA chat_chat TO chat_chat_app;
    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA chat_chat TO chat_chat_app;
    ALTER DEFAULT PRIVILEGES IN SCHEMA chat_chat GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO chat_chat_app;
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
    op.execute("DROP TABLE " + ", ".join(f"chat_chat.{table}" for table in ("tenants", *OF_A_TENANT)))
