-- Only SQLite's triggers change here.
SELECT 1;
