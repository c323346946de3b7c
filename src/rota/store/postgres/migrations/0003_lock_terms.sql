-- For how long a lock's owner asked, in microseconds; NULL for one that was taken before this was kept.
ALTER TABLE {ns}.lock ADD COLUMN ttl bigint;
