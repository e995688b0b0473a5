-- Messages by the groups of three characters in them, for searches. The expression is that of the searches (sql::PLAIN).
-- Without the extension, or the right to use it, a search reads all messages in the database.
DO $$
DECLARE place name;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm') THEN
        -- Where all tenants can use it, if that is allowed.
        IF (SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = 'public') THEN
            CREATE EXTENSION pg_trgm WITH SCHEMA public;
        ELSE
            CREATE EXTENSION pg_trgm WITH SCHEMA myclaw;
        END IF;
    END IF;
    SELECT nspname INTO place FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
        WHERE extname = 'pg_trgm';
    EXECUTE format(
        'CREATE INDEX entry_text ON myclaw.entry USING gin '
        '(lower(translate(body, %L, %L) COLLATE "C") %I.gin_trgm_ops) WHERE kind = %L',
        U&'\017F\212A', 'sk', place, 'message'
    );
EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported OR undefined_object THEN
    RAISE NOTICE 'searches are slow in this database: %', SQLERRM;
END $$;
