-- The sessions of the list that have labels, such as those that are pinned or archived. The condition is that of
-- sql::LABELLED.
CREATE INDEX session_labelled ON myclaw.session (partition, listed_at DESC, key)
    WHERE listed IS NOT NULL AND listed LIKE '%"labels":["%';
