"""Natgrad beside what people use today: same network, same points, same start, same errors, same machine.

    randngd_runs, natgrad_runs    the five problems of the paper at the paper's sizes (a GPU), one run each, JSON out
    table                         a folder of such runs as a table of times to given errors
    run                           three small problems on a CPU against five packages, each in its own environment

Two clocks: `time` counts stepping alone, `wall` everything since the solver was made, compilation included; neither
counts the evaluation of errors.
"""
