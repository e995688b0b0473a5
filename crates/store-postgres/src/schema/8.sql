-- Old parts of logs. Their rows are one content in the object storage. "ids" has a number for the id of each row, 0 without
-- one; "grams" has the groups of three characters in its messages, for searches; "about" is the last title in it.
CREATE TABLE myclaw.segment (
    session bigint NOT NULL REFERENCES myclaw.session (id) ON DELETE CASCADE,
    from_seq bigint NOT NULL,
    to_seq bigint NOT NULL,
    blob bigint NOT NULL REFERENCES myclaw.blob (id),
    digest text NOT NULL,
    ids bigint[] NOT NULL,
    grams integer[] NOT NULL,
    about_seq bigint,
    about text,
    PRIMARY KEY (session, from_seq)
);
CREATE INDEX segment_blob ON myclaw.segment (blob);
CREATE INDEX segment_grams ON myclaw.segment USING gin (grams);
-- So many of its first rows are in segments.
ALTER TABLE myclaw.session ADD COLUMN sealed bigint NOT NULL DEFAULT 0;
-- The sessions with a summary, before which rows may be sealed, and when somebody last looked whether that is worth it.
CREATE TABLE myclaw.sealable (
    session bigint PRIMARY KEY REFERENCES myclaw.session (id) ON DELETE CASCADE,
    tried timestamptz NOT NULL DEFAULT '-infinity'
);
CREATE INDEX sealable_tried ON myclaw.sealable (tried);
INSERT INTO myclaw.sealable (session) SELECT DISTINCT session FROM myclaw.entry WHERE kind = 'compaction';
-- A program of an earlier version that still runs does not read segments, so there are none until it has been replaced.
ALTER TABLE myclaw.format ADD COLUMN seals_from timestamptz;
UPDATE myclaw.format SET seals_from = CASE WHEN number = 0 THEN '-infinity' ELSE clock_timestamp() + interval '1 day' END;
