"""Export all that is stored of a person, and import exports and the exports of other products."""
