"""A person as a whole: users reads, exports and erases all of it; export and imports carry it out and in as records."""
