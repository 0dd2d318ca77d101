"""A person as a whole: what is stored of them, taking it along, bringing it in again, and erasing it."""
