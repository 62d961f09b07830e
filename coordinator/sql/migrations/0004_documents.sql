-- Documents: shared state under version checks, in collections with rules of their own.

-- One row a collection. `version` is that of its newest definition. `revision` counts what changed
-- in it: whoever writes locks this row first, so that revisions become visible in their order.
CREATE TABLE headway.collections (
    name text PRIMARY KEY,
    version integer NOT NULL CHECK (version > 0),
    digest text NOT NULL,
    revision bigint NOT NULL
);

CREATE TABLE headway.collection_definitions (
    collection text NOT NULL REFERENCES headway.collections (name),
    version integer NOT NULL CHECK (version > 0),
    digest text NOT NULL,
    body json NOT NULL,
    registered_at timestamptz NOT NULL,
    PRIMARY KEY (collection, version)
);

-- The newest version of each document. One that is deleted keeps its row, without a body, so that
-- no version comes twice. Keys are in the order of their bytes, which prefixes need.
CREATE TABLE headway.documents (
    collection text NOT NULL REFERENCES headway.collections (name),
    key text COLLATE "C" NOT NULL,
    version integer NOT NULL CHECK (version > 0),
    revision bigint NOT NULL,
    body json,
    digest text NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (collection, key)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

CREATE INDEX documents_changed ON headway.documents (collection, revision);

-- Every version of every document, with who wrote it; for ever.
CREATE TABLE headway.document_versions (
    collection text NOT NULL,
    key text COLLATE "C" NOT NULL,
    version integer NOT NULL CHECK (version > 0),
    definition integer NOT NULL,  -- the version of the collection that it was checked against
    body json,
    digest text NOT NULL,
    at timestamptz NOT NULL,
    operation uuid,  -- what makes a repeated write harmless
    by text NOT NULL,
    task uuid,
    step text NOT NULL,
    PRIMARY KEY (collection, key, version),
    FOREIGN KEY (collection, definition)
        REFERENCES headway.collection_definitions (collection, version)
);

CREATE UNIQUE INDEX document_operations ON headway.document_versions (operation, collection, key)
WHERE operation IS NOT NULL;

CREATE FUNCTION headway.refuse_change_of_document_version() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'versions of documents are kept as they are: % is refused', TG_OP;
END
$$;

CREATE TRIGGER document_versions_are_kept
BEFORE UPDATE OR DELETE ON headway.document_versions
FOR EACH ROW EXECUTE FUNCTION headway.refuse_change_of_document_version();
