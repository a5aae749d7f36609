"""Names for writing plugins, in one import.

>>> from auditor.plugin import Affine, LinearAttack, View, register   # an attack in one module

| kind of plugin | base class | input; output |
| --- | --- | --- |
| attack on numbers | ``LinearAttack``, ``RowAttack`` | ``View``; ``Affine`` or ``AffineStack``, ``Reconstruction`` |
| attack on categories | ``CategoricalAttack`` | ``CategoricalView``; ``Inference`` |
| scheme of numbers | ``AdditiveScheme``, ``TransformScheme``, ``Scheme`` | ``TableMoments``, ``Key``; ``NoiseLaw``, ``Sampler`` |
| scheme of categories | ``UniformScheme`` | codes, ``Key``; ``UniformLaw``, ``Copies`` |
| source | ``Source`` | a generator; a data frame, and optionally its ``RecordLaw`` |
| expectation | ``Expectation`` | ``Evidence``; ``Judgement`` |
| renderer | ``Renderer`` | results; text |
| feature family | ``Feature`` | ``Shown``, ``Known``; columns |
| case of the self-test | ``Case`` with a scheme's base class | input of the scheme |

An attack that uses neighbouring records sets ``serial = True``. On numbers, ``neighbours`` of its
``Reconstruction`` is the number of rows before and after a record that an estimate needs. On
categories, its ``Inference`` sets ``serial`` and receives blocks of records in order, instead of
each outcome once.

Plugins may rely on these names. ``scipy`` is SciPy, imported at first use. ``auditor.testing``
checks plugins.
"""

from auditor.adversary.attack import (
    Affine,
    AffineStack,
    Attack,
    CategoricalAttack,
    CategoricalView,
    Cost,
    Inference,
    Inferred,
    LinearAttack,
    Reconstruction,
    Regions,
    RowAttack,
    mask,
)
from auditor.adversary.knowledge import (
    Estimated,
    Knowledge,
    KnownAttributes,
    KnownRecords,
    KnownSample,
    Perfect,
    PublishedModel,
    PublishedRules,
    UniformPrior,
    UnmatchedRecords,
)
from auditor.adversary.view import (
    ExactMoments,
    KnownPairs,
    Moments,
    Prior,
    Records,
    SampleCounts,
    SampleMoments,
    UnpairedRecords,
    View,
)
from auditor.audit.insider.feature import Column, Feature, Known, Shown
from auditor.base import AuditorError, DataError, NotApplicable, PluginError, scipy
from auditor.base.types import (
    Array,
    Arrays,
    ClassRecords,
    Coalition,
    Codes,
    CopyBlocks,
    Flags,
    Indices,
    Pair,
    unprinted,
)
from auditor.data.source import Outline, RecordLaw, RecordShape, Source, Table
from auditor.expectations.base import Evidence, Expectation, Filter, Judgement
from auditor.registry import Plugin, PluginParameters, register
from auditor.results.comparison import Renderer
from auditor.schemes.base.noise_law import (
    DenseNoise,
    KroneckerNoise,
    NoiseDensity,
    NoiseLaw,
    Transform,
)
from auditor.schemes.base.scheme import Case, Key, Sampler, Scheme, TableMoments
from auditor.schemes.corner_wave import AdditiveScheme, Step, stream
from auditor.schemes.linear_maps import TransformScheme
from auditor.schemes.replacement.base import Copies, UniformLaw, UniformScheme

__all__ = [
    "AdditiveScheme",
    "Affine",
    "AffineStack",
    "Array",
    "Arrays",
    "Attack",
    "AuditorError",
    "Case",
    "CategoricalAttack",
    "CategoricalView",
    "ClassRecords",
    "Coalition",
    "Codes",
    "Column",
    "Copies",
    "CopyBlocks",
    "Cost",
    "DataError",
    "DenseNoise",
    "Estimated",
    "Evidence",
    "ExactMoments",
    "Expectation",
    "Feature",
    "Filter",
    "Flags",
    "Indices",
    "Inference",
    "Inferred",
    "Judgement",
    "Key",
    "Knowledge",
    "Known",
    "KnownAttributes",
    "KnownPairs",
    "KnownRecords",
    "KnownSample",
    "KroneckerNoise",
    "LinearAttack",
    "Moments",
    "NoiseDensity",
    "NoiseLaw",
    "NotApplicable",
    "Outline",
    "Pair",
    "Perfect",
    "Plugin",
    "PluginError",
    "PluginParameters",
    "Prior",
    "PublishedModel",
    "PublishedRules",
    "Reconstruction",
    "RecordLaw",
    "RecordShape",
    "Records",
    "Regions",
    "Renderer",
    "RowAttack",
    "SampleCounts",
    "SampleMoments",
    "Sampler",
    "Scheme",
    "Shown",
    "Source",
    "Step",
    "Table",
    "TableMoments",
    "Transform",
    "TransformScheme",
    "UniformLaw",
    "UniformPrior",
    "UniformScheme",
    "UnmatchedRecords",
    "UnpairedRecords",
    "View",
    "mask",
    "register",
    "scipy",
    "stream",
    "unprinted",
]
