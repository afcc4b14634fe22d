"""Reference solutions where there is no closed form: computed once, accurate to about ten digits, differentiable.

One file per equation. For coefficients with which one would take long, or would not be accurate, it is refused in one
line. What takes more than a second is kept on disk (`cache.py`).
"""

from natgrad.zoo._reference.allen_cahn import allen_cahn as allen_cahn
from natgrad.zoo._reference.burgers import burgers as burgers
from natgrad.zoo._reference.cavity import cavity as cavity
from natgrad.zoo._reference.condensate import condensate as condensate
from natgrad.zoo._reference.corners import LIDS as LIDS
from natgrad.zoo._reference.corners import walls as walls
from natgrad.zoo._reference.periodic import allen_cahn_standard as allen_cahn_standard
from natgrad.zoo._reference.periodic import ginzburg_landau as ginzburg_landau
from natgrad.zoo._reference.periodic import gray_scott as gray_scott
from natgrad.zoo._reference.periodic import kdv as kdv
from natgrad.zoo._reference.periodic import kuramoto_sivashinsky as kuramoto_sivashinsky
