"""Experiments: run folders that survive a crash, and the tables, pictures and pages made from them."""
