"""Everything that a plugin is written with, in one import: attacks, schemes, sources, expectations and renderers.

>>> from auditor.plugin import Affine, LinearAttack, View, register   # an attack in one module

Names are those of the rooms they come from; what stands here is what a plugin may rely on.
"""

from __future__ import annotations

from auditor.adversary.affine import Affine, AffineStack
from auditor.adversary.attack import Attack, Inferred, LinearAttack, Reconstruction, RowAttack
from auditor.adversary.categorical_attack import CategoricalAttack, CategoricalView, Inference, KnownPairs
from auditor.adversary.knowledge import (
    Estimated,
    Knowledge,
    KnownAttributes,
    KnownRecords,
    KnownSample,
    Perfect,
    UniformPrior,
    UnmatchedRecords,
)
from auditor.adversary.view import Records, View
from auditor.data.source import Source
from auditor.data.table import Table
from auditor.errors import AuditorError, DataError, NotApplicable, PluginError
from auditor.expectations.base import Expectation, Filter, Judgement
from auditor.numerics.moments import Moments
from auditor.numerics.random_streams import stream
from auditor.registry import Plugin, PluginParameters, register
from auditor.results.evidence import Evidence
from auditor.results.renderer import Renderer
from auditor.schemes.base.additive import AdditiveScheme, Step
from auditor.schemes.base.noise_law import DenseNoise, GaussianNoise, NoiseLaw
from auditor.schemes.base.scheme import Key, Sampler, Scheme, TableMoments
from auditor.types import Array, Coalition, Codes, Indices

__all__ = [
    "AdditiveScheme", "Affine", "AffineStack", "Array", "Attack", "AuditorError", "CategoricalAttack", "CategoricalView", "Coalition",
    "Codes",
    "DataError", "DenseNoise", "Estimated", "Evidence", "Expectation", "Filter", "GaussianNoise", "Indices", "Inference", "Inferred",
    "Judgement", "Key", "Knowledge", "KnownAttributes", "KnownPairs", "KnownRecords", "KnownSample", "LinearAttack", "Moments", "NoiseLaw",
    "NotApplicable", "Perfect", "Plugin", "PluginError", "PluginParameters", "Reconstruction", "Records", "Renderer", "RowAttack",
    "Sampler",
    "Scheme", "Source", "Step", "Table", "TableMoments", "UniformPrior", "UnmatchedRecords", "View", "register", "stream",
]  # fmt: skip
