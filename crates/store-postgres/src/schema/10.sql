-- Whether "taken" has all messages that the log of a session has taken: from its first row on, or since somebody has read them
-- all. A log that was copied, imported, or begun by a program of an earlier version may have others.
ALTER TABLE myclaw.session ADD COLUMN knows_taken boolean NOT NULL DEFAULT false;
