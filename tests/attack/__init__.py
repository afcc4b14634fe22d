"""Attacks on what natgrad promises: kills, damaged folders, wrong command lines and wrong calls (`make attack`).

A suite is a class made in an empty folder, whose `case(index)` does one thing that goes wrong out there and says what
came of it. The same index is the same case, on every machine and in any order. `python -m tests.attack SUITE
START STOP` runs some of them by hand.
"""
