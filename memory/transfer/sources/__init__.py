"""Exports of other programs, a module each: pure readers that recognise an item by its shape and return records."""
