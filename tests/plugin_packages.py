from textwrap import dedent


def install(site, name, **modules):
    package = site / name
    package.mkdir(parents=True)
    for module, text in ({"__init__": f'"""Package {name}."""\n'} | modules).items():
        (package / f"{module}.py").write_text(dedent(text), encoding="utf-8")
    metadata = site / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[auditor.plugins]\n{name} = {name}\n")
    return site


BROKEN_ATTACKS = '''
    """Attacks that break, each in its own way; some with data in their messages."""

    import numpy as np

    from auditor.adversary.attack import LinearAttack, Reconstruction, RowAttack
    from auditor.adversary.attack import Affine
    from auditor.registry import register


    def mean_of_copies(view):
        return Affine(np.kron(view.weights, np.eye(view.width)), np.zeros(view.width))


    @register
    class Raises(LinearAttack):
        """Raises, with data in its message."""

        name = "raises"

        def affine(self, view):
            raise ValueError(f"{view.centre.tolist()} {view.released.total.tolist()}")


    @register
    class RaisesOnPairs(LinearAttack):
        """Raises for coalitions of two."""

        name = "raises-on-pairs"

        def affine(self, view):
            if len(view.copies) == 2:
                raise ZeroDivisionError
            return mean_of_copies(view)


    @register
    class NotANumber(LinearAttack):
        """Returns weights that are no numbers."""

        name = "not-a-number"

        def affine(self, view):
            return Affine(np.full((view.width, view.width * len(view.copies)), np.nan), np.zeros(view.width))


    @register
    class WrongShape(LinearAttack):
        """Returns weights of the wrong shape."""

        name = "wrong-shape"

        def affine(self, view):
            return Affine(np.zeros((1, 1)), np.zeros(view.width))


    class Rows(Reconstruction):
        """Breaks while it reconstructs."""

        def __init__(self, how):
            self.how = how

        def rows(self, copies):
            x = copies[0].copy()
            if self.how == "raises":
                raise RuntimeError(f"{x.tolist()}")
            if self.how == "nan":
                x[0, 0] = np.nan
            return x[:-1] if self.how == "shape" else x


    class RowBase(RowAttack):
        """Breaks row by row."""

        def fit(self, view, blocks):
            if self.name == "row-fit":
                raise KeyError(next(iter(blocks))[0].tolist())
            return Rows(self.name.removeprefix("row-"))


    def row_attack(name):
        return type(name, (RowBase,), {"__doc__": "Breaks, or does not.", "__module__": __name__, "name": name})


    for name in ("row-raises", "row-nan", "row-shape", "row-fit", "row-fine"):
        register(row_attack(name))
'''

BROKEN_SCHEMES = '''
    """Schemes that break, with data in their messages."""

    import numpy as np

    from auditor.registry import register
    from auditor.schemes.correlated_base import Base


    class Sampler:
        """Breaks while it draws."""

        def __init__(self, how):
            self.how = how

        def block(self, index, x, out, existing=0):
            if self.how == "raises":
                raise ValueError(f"{x.tolist()}")
            for copy in out:
                copy[...] = np.nan


    @register
    class SchemeLaw(Base):
        """Raises when asked for its law."""

        name = "scheme-law"

        def law(self, levels, table):
            raise ValueError(f"{table.mean.tolist()}")


    @register
    class SchemeRaises(Base):
        """Raises while it draws."""

        name = "scheme-raises"

        def sampler(self, *arguments, **options):
            return Sampler("raises")


    @register
    class SchemeNaN(Base):
        """Draws what is no number."""

        name = "scheme-nan"

        def sampler(self, *arguments, **options):
            return Sampler("nan")
'''.replace(
    "auditor.schemes.correlated_base import Base",
    "auditor.schemes.corner_wave import CornerWave as Base",
)
