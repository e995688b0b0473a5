-- A store as version 0.1 wrote it, with a claim and a record outside of queues.
CREATE TABLE records (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    value BLOB NOT NULL,
    queue TEXT,
    place INTEGER,
    entered INTEGER NOT NULL,
    epoch INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    lease_until INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, key)
) STRICT;
CREATE INDEX queues ON records (queue, place, entered) WHERE queue IS NOT NULL;
CREATE TABLE counter (value INTEGER NOT NULL) STRICT;
INSERT INTO counter VALUES (9);
INSERT INTO records VALUES ('incoming', 'm2', 5, x'74776f', 'open', 1700000000002, 6, 0, NULL, 0);
INSERT INTO records VALUES ('incoming', 'm1', 3, x'6f6e65', 'open', 1700000000001, 4, 7, 'process 1', 1700000000000);
INSERT INTO records VALUES ('job', 'j', 8, x'7b7d', NULL, NULL, 9, 0, NULL, 0);
PRAGMA application_id = 1299792748;
PRAGMA user_version = 1;
