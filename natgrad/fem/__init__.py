"""Finite elements for interpolated networks: meshes and forms in, frozen JAX operators out.

    space = rectangle((30, 30), degree=4)                    # or Space(a scikit-fem mesh, degree=2)
    free = space.free(["left", "right"])                     # nodes not on the Dirichlet boundary
    A = space.operator(Form(advection=[1.0, 0.0]), free)     # A.apply(x), A.apply_transpose(x)
    b = space.load(lambda x: jnp.sin(x[0]), neumann={"top": lambda x, n: n[1]})
    R = space.riesz(STIFFNESS, free, kind="fast")            # the inverse of a symmetric form

Set-up is NumPy on the host, once; what comes out are Equinox modules whose arrays are leaves.
"""

from natgrad.fem.base import BaseSpace as BaseSpace
from natgrad.fem.errors import FEErrors as FEErrors
from natgrad.fem.forms import H1 as H1
from natgrad.fem.forms import MASS as MASS
from natgrad.fem.forms import STIFFNESS as STIFFNESS
from natgrad.fem.forms import Form as Form
from natgrad.fem.operators import Operator as Operator
from natgrad.fem.space import Space as Space
from natgrad.fem.tensor import TensorSpace as TensorSpace
from natgrad.fem.tensor import rectangle as rectangle
