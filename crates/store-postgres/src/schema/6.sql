-- Contents that belong to sessions, such as the files of their tools. Their bytes are in the parts. One that nothing names
-- is the rest of a program that was killed, and is removed a day after it was begun.
CREATE TABLE myclaw.blob (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    partition bigint NOT NULL REFERENCES myclaw.partition (id),
    begun timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE myclaw.blob_part (
    blob bigint NOT NULL REFERENCES myclaw.blob (id) ON DELETE CASCADE,
    number bigint NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (blob, number)
);
-- The side files of a session, with the digests (SHA-256) of their contents. The number in the row of the session changes with
-- them; without any it is 0.
CREATE TABLE myclaw.side_file (
    session bigint NOT NULL REFERENCES myclaw.session (id) ON DELETE CASCADE,
    name text COLLATE "C" NOT NULL,
    blob bigint NOT NULL REFERENCES myclaw.blob (id),
    bytes bigint NOT NULL,
    digest text NOT NULL,
    PRIMARY KEY (session, name)
);
CREATE INDEX side_file_blob ON myclaw.side_file (blob);
ALTER TABLE myclaw.session ADD COLUMN side_files bigint NOT NULL DEFAULT 0;
