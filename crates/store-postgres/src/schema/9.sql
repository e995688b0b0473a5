-- Titles and summaries, of which the newest is looked for. Without it, a log that has none is read as a whole. The condition
-- follows from those of sql::LAST_ABOUT and sql::LAST_OF_KIND.
CREATE INDEX entry_marks ON myclaw.entry (session, kind, seq) WHERE kind IN ('about', 'compaction');
