"""A person as a whole: users reads and exports all of it; export and imports carry it out and in as records."""
