"""The same algorithms behind the interfaces of Optimistix, Optax and Lineax: import the one that is wanted,
`import natgrad.interop.optax`. Each needs its library, and natgrad itself needs none of them.
`natgrad.interop.vtk` writes fields for ParaView and others.
"""
