"""What differs by device, or is there because of XLA and the libraries under it. No other room asks for the platform.

tuning        numbers that depend on the device, by name
xla           what XLA has to be told: barriers, branches, calls into Python, compiler options
chunks        loops over some rows at a time
products      large matrix products, inverses of triangles
blas          the threads of LAPACK
programs/     compiled programs, used again
parallel      points spread over devices, and the sums across them
host          set-up by NumPy, which compiles nothing
"""
