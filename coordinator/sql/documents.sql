-- Collections and their documents. Whoever writes documents locks the rows of their collections
-- first, in the order of their names.

-- name: register_collection
-- $1 name, $2 digest, $3 definition, $4 at (ms). A definition other than the newest becomes the next
-- version. Answers nothing if a peer registered the same one in this very moment: ask again.
WITH changed AS (
    INSERT INTO headway.collections AS c (name, version, digest, revision)
    VALUES ($1, 1, $2, 0)
    ON CONFLICT (name) DO UPDATE
    SET version = c.version + 1, digest = excluded.digest
    WHERE c.digest <> excluded.digest
    RETURNING name, version
),

defined AS (
    INSERT INTO headway.collection_definitions (collection, version, digest, body, registered_at)
    SELECT name, version, $2, $3::json, to_timestamp($4::bigint / 1000.0)
    FROM changed
    RETURNING version, registered_at
)

SELECT version, registered_at FROM defined
UNION ALL
SELECT d.version, d.registered_at
FROM headway.collections AS c
JOIN headway.collection_definitions AS d ON d.collection = c.name AND d.version = c.version
WHERE c.name = $1 AND c.digest = $2 AND NOT EXISTS (SELECT FROM changed);

-- name: newest_definitions
-- The newest definition of these collections.
SELECT d.version, d.body
FROM headway.collections AS c
JOIN headway.collection_definitions AS d ON d.collection = c.name AND d.version = c.version
WHERE c.name = ANY($1::text[]);

-- name: documents_before_writes
-- What writes are decided on, all of one moment. $1, $2 collections and keys of the documents, each
-- once; $3-$5 collections, keys and operations of the writes. Answers a row without an operation
-- for each document (the version of its collection's definition, and its own where there is one),
-- and a row for each operation that was carried out before.
SELECT w.collection, w.key, NULL::uuid AS operation, c.version AS definition, d.version, d.body,
       d.digest, d.updated_at AS at
FROM unnest($1::text[], $2::text[]) AS w (collection, key)
LEFT JOIN headway.collections AS c ON c.name = w.collection
LEFT JOIN headway.documents AS d ON d.collection = w.collection AND d.key = w.key
UNION ALL
SELECT v.collection, v.key, v.operation, v.definition, v.version, NULL, v.digest, v.at
FROM unnest($3::text[], $4::text[], $5::uuid[]) AS w (collection, key, operation)
JOIN headway.document_versions AS v
    ON v.operation = w.operation AND v.collection = w.collection AND v.key = w.key;

-- name: write_documents
-- $1, $2 collections, each once, and the version of the definition that was checked against
-- $3-$12 documents, each once: collection, key, version read (0: there never was one), new version,
-- body (null: deleted), digest, and of the write operation, by, task, step; $13 at (ms)
-- Answers the documents that were still at the version read; the others are to be decided anew, as
-- are those of a collection that was defined anew.
WITH locked AS (
    SELECT c.name, c.version
    FROM headway.collections AS c
    JOIN unnest($1::text[], $2::integer[]) AS checked (name, version)
        ON checked.name = c.name AND checked.version = c.version
    ORDER BY c.name
    FOR UPDATE OF c
),

counted AS (
    UPDATE headway.collections AS c
    SET revision = c.revision + n.documents
    FROM (
        SELECT l.name, l.version, count(*) AS documents
        FROM locked AS l
        JOIN unnest($3::text[]) AS d (collection) ON d.collection = l.name
        GROUP BY l.name, l.version
    ) AS n
    WHERE c.name = n.name
    RETURNING c.name, n.version AS definition, c.revision - n.documents AS revision
),

wanted AS (
    SELECT d.*, c.definition,
           c.revision + row_number() OVER (PARTITION BY d.collection) AS revision,
           to_timestamp($13::bigint / 1000.0) AS at
    FROM unnest(
        $3::text[], $4::text[], $5::integer[], $6::integer[], $7::json[], $8::text[],
        $9::uuid[], $10::text[], $11::uuid[], $12::text[]
    ) AS d (collection, key, expected, version, body, digest, operation, by, task, step)
    JOIN counted AS c ON c.name = d.collection
),

updated AS (
    UPDATE headway.documents AS d
    SET version = w.version,
        revision = w.revision,
        body = w.body,
        digest = w.digest,
        updated_at = w.at
    FROM wanted AS w
    WHERE d.collection = w.collection AND d.key = w.key AND d.version = w.expected
    RETURNING d.collection, d.key
),

inserted AS (
    INSERT INTO headway.documents (collection, key, version, revision, body, digest, updated_at)
    SELECT collection, key, version, revision, body, digest, at
    FROM wanted
    WHERE expected = 0
    ON CONFLICT DO NOTHING
    RETURNING collection, key
),

written AS (
    SELECT collection, key FROM updated
    UNION ALL
    SELECT collection, key FROM inserted
),

kept AS (
    INSERT INTO headway.document_versions (
        collection, key, version, definition, body, digest, at, operation, by, task, step
    )
    SELECT w.collection, w.key, w.version, w.definition, w.body, w.digest, w.at, w.operation, w.by,
           w.task, w.step
    FROM wanted AS w
    JOIN written AS t ON t.collection = w.collection AND t.key = w.key
)

SELECT collection, key FROM written;

-- name: document
SELECT version, body, digest, updated_at AS at
FROM headway.documents
WHERE collection = $1 AND key = $2;

-- name: document_version
SELECT version, body, digest, at
FROM headway.document_versions
WHERE collection = $1 AND key = $2 AND version = $3;

-- name: list_documents
-- In the order of their keys: $2 what keys begin with, $3 after this key, $4 how many. No key is
-- longer than 512 characters, so the longest one that begins like this bounds the search.
SELECT key, version, digest, updated_at AS at
FROM headway.documents
WHERE collection = $1
  AND key > $3
  AND key >= $2
  AND key <= $2 || repeat(chr(1114111), 512)
  AND starts_with(key, $2)
  AND body IS NOT NULL
ORDER BY key
LIMIT $4;

-- name: document_history
-- A document's versions after version $3, at most $4.
SELECT version, body, digest, at, operation, by, task, step
FROM headway.document_versions
WHERE collection = $1 AND key = $2 AND version > $3
ORDER BY version
LIMIT $4;

-- name: changes_of_collection
-- The documents that changed after revision $2, at most $3; a row without a key if none did, and
-- no row if there is no such collection.
SELECT c.revision AS newest, d.key, d.version, d.revision, d.body, d.digest, d.updated_at AS at
FROM headway.collections AS c
LEFT JOIN LATERAL (
    SELECT key, version, revision, body, digest, updated_at
    FROM headway.documents
    WHERE collection = c.name AND revision > $2
    ORDER BY revision
    LIMIT $3
) AS d ON true
WHERE c.name = $1
ORDER BY d.revision;

-- name: changes_of_document
-- As `changes_of_collection`, of one document $3 alone.
SELECT c.revision AS newest, d.key, d.version, d.revision, d.body, d.digest, d.updated_at AS at
FROM headway.collections AS c
LEFT JOIN headway.documents AS d
    ON d.collection = c.name AND d.key = $3 AND d.revision > $2
WHERE c.name = $1;
