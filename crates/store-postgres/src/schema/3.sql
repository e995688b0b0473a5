-- The messages of the inbox that the log of a session names as taken, so that none of them waits again: a sender that was cut
-- off may repeat what it does not know to have happened.
CREATE TABLE myclaw.taken (
    session bigint NOT NULL REFERENCES myclaw.session (id) ON DELETE CASCADE,
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, id)
);
