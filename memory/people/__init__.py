"""A person as a whole.

users     what is stored of a person         export    all of it, to take along
imports   bringing it in again               records   the values that an export and an import pass on
erasing   erasing it, and the receipt        kinds     the registry of what belongs to an owner
erased_message   what one message leaves behind in its session
"""
