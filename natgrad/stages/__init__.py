"""Problems one after the other, each begun where the last one ended: windows of time, values of a parameter."""

from natgrad.stages.continuation import continuation as continuation
from natgrad.stages.march import march as march
