"""Private sparse fits of records with more columns than rows, ours and published ones."""
