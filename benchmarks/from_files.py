"""The command ``auditor`` where every table of a file stays in it, however small: ``python -m benchmarks.from_files run SCENARIO``.

Tables of millions of records are gone through in passes; so are these, in seconds.
"""

from auditor.cli import main
from auditor.data.columns import scan as streamed

if __name__ == "__main__":
    streamed.HELD_BYTES = 0
    main()
