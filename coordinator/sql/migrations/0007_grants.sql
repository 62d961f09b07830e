-- Which keys let an agent's workers into NATS. Only the public halves; what each may do there follows
-- from its agent's name. An agent may have several at a time, as while one replaces another.
CREATE TABLE headway.grants (
    public_key text PRIMARY KEY,
    agent text NOT NULL,
    granted_at timestamptz NOT NULL,
    granted_by text NOT NULL,
    revoked_at timestamptz,
    revoked_by text NOT NULL DEFAULT ''
);

CREATE INDEX grants_of_agent ON headway.grants (agent);
