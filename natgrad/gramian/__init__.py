"""The Gramian: one operator, four strategies."""

from natgrad.gramian.assembled import Assembled as Assembled
from natgrad.gramian.base import Gramian as Gramian
from natgrad.gramian.base import feature_values as feature_values
from natgrad.gramian.base import second_directional as second_directional
from natgrad.gramian.batched import BatchedJacobian as BatchedJacobian
from natgrad.gramian.choose import gramian as gramian
from natgrad.gramian.linearized import Linearized as Linearized
from natgrad.gramian.neighbours import NeighbourBatches as NeighbourBatches
from natgrad.gramian.scaled import Scaled as Scaled
from natgrad.gramian.sharded import Sharded as Sharded
from natgrad.gramian.stored import StoredJacobian as StoredJacobian
