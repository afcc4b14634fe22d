"""Files that are whole or not there, and what was trained in them."""
