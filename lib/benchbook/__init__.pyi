# What editors and the Tab key know without running anything: the types that __init__.py loads when asked.
from typing import Any

import pandas as pd

from benchbook.api.finding import Finding as Finding
from benchbook.api.names import Named
from benchbook.api.names import NotThere as NotThere
from benchbook.api.run import Run as Run
from benchbook.api.source import Claim as Claim
from benchbook.api.source import Source as Source
from benchbook.api.study import Study as Study

__version__: str

def columns(table: Any = None) -> pd.DataFrame: ...
def record() -> Named[Study]: ...
def source(name: str) -> Source: ...
def sources() -> Named[Source]: ...
def studies() -> Named[Study]: ...
def study(name: str) -> Study: ...
