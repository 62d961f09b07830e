-- Who may ask for what, whose a task is, and the secret that commands are signed with.

-- The tokens of people and programs. Only a digest of each is kept; `id` is its public part.
CREATE TABLE headway.tokens (
    id text PRIMARY KEY,
    name text NOT NULL,
    role text NOT NULL CHECK (role IN ('view', 'submit', 'operate')),
    digest bytea NOT NULL CHECK (length(digest) = 32),
    made_at timestamptz NOT NULL,
    revoked_at timestamptz
);

CREATE UNIQUE INDEX tokens_name ON headway.tokens (name) WHERE revoked_at IS NULL;

-- What the key of each agent is derived from: one row, made by the first coordinator.
CREATE TABLE headway.command_secrets (
    number integer PRIMARY KEY CHECK (number = 1),
    secret bytea NOT NULL CHECK (length(secret) = 32),
    made_at timestamptz NOT NULL
);

-- The name of the token that a task was submitted with; '' without one.
ALTER TABLE headway.tasks ADD COLUMN owner text NOT NULL DEFAULT '';

CREATE INDEX tasks_of_owner ON headway.tasks (owner, id) WHERE owner <> '';
