-- With a place, the bytes of a content are in the object storage under that name.
ALTER TABLE myclaw.blob ADD COLUMN place text;
