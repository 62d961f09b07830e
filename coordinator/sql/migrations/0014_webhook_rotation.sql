-- A webhook's secret can be changed while its sender still signs with the one before, which is
-- derived from `old_salt` and good until `old_until`.
ALTER TABLE headway.webhooks
    ADD COLUMN old_salt bytea CHECK (length(old_salt) = 16),
    ADD COLUMN old_until timestamptz,
    ADD CHECK ((old_salt IS NULL) = (old_until IS NULL));
