-- Gives the numbers of openings, so that those of a deleted session do not come back.
CREATE SEQUENCE myclaw.epoch;

-- One row per session that exists, is listed, or is open. It exists once it has entries. Whoever has it open is its owner
-- until the lease ends, and may append as long as nobody else has opened it since: each opening has a higher epoch.
CREATE TABLE myclaw.session (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    partition bigint NOT NULL REFERENCES myclaw.partition (id),
    key text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    owner text,
    lease_until timestamptz NOT NULL DEFAULT '-infinity',
    last_seq bigint NOT NULL DEFAULT 0,
    -- The header of the log.
    header text,
    -- How many of its first entries are those of the session that it was forked from.
    inherited bigint NOT NULL DEFAULT 0,
    -- When something was appended last, in milliseconds since the Unix epoch, as "listed_at".
    written_at bigint NOT NULL DEFAULT 0,
    -- Its entry in the list, as JSON.
    listed text,
    listed_at bigint,
    in_turn boolean NOT NULL DEFAULT false,
    UNIQUE (partition, key)
);
CREATE INDEX session_listed ON myclaw.session (partition, listed_at DESC, key) WHERE listed IS NOT NULL;

-- The log: one row per line of the file that an export writes. The same message is never in it twice.
CREATE TABLE myclaw.entry (
    session bigint NOT NULL REFERENCES myclaw.session (id) ON DELETE CASCADE,
    seq bigint NOT NULL,
    id text COLLATE "C",
    kind text NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (session, seq),
    UNIQUE (session, id)
);

-- Whoever changes an inbox holds the lock of its row here.
CREATE TABLE myclaw.mailbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    partition bigint NOT NULL REFERENCES myclaw.partition (id),
    key text COLLATE "C" NOT NULL,
    UNIQUE (partition, key)
);
CREATE TABLE myclaw.inbox (
    mailbox bigint NOT NULL REFERENCES myclaw.mailbox (id) ON DELETE CASCADE,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    id text COLLATE "C" NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (mailbox, id)
);
