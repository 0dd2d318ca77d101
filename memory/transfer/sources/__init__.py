"""What other programs export, a module for each: pure readers that recognise an item by its shape and give records."""
