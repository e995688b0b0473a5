-- CREATE SCHEMA IF NOT EXISTS asks for the right to create one even where it exists.
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'myclaw') THEN
        CREATE SCHEMA myclaw;
    END IF;
END $$;

CREATE TABLE myclaw.format (number integer NOT NULL);
INSERT INTO myclaw.format VALUES (0);

-- What belongs to one party. A transaction that writes locks the row of its partition first. The counter gives versions,
-- epochs and positions, and never goes back.
CREATE TABLE myclaw.partition (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    counter bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10);

-- One row per record. "entered" orders the records of a queue that have the same place. "epoch", "owner" and "lease_until"
-- (milliseconds since the Unix epoch) belong to the newest claim.
CREATE TABLE myclaw.record (
    partition bigint NOT NULL REFERENCES myclaw.partition (id),
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    value bytea NOT NULL,
    queue text COLLATE "C",
    place bigint,
    entered bigint NOT NULL,
    epoch bigint NOT NULL,
    owner text,
    lease_until bigint NOT NULL,
    PRIMARY KEY (partition, kind, key)
);
CREATE INDEX record_queue ON myclaw.record (partition, queue, place, entered) WHERE queue IS NOT NULL;

-- One row per transaction of the last minutes: a program that did not learn whether its transaction was committed looks here.
CREATE TABLE myclaw.receipt (
    token bigint PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
