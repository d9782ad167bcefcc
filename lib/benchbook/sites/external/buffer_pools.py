"""Size of the data beside the buffer pools of the servers, read before anything is loaded there."""

import math
from collections.abc import Mapping
from functools import partial

import sqlalchemy

from benchbook.core.study.study import StudySpec
from benchbook.core.study.sysbench_workloads import ROW_BYTES
from benchbook.core.util import process_env
from benchbook.core.util.errors import BenchbookError
from benchbook.sites import workspace as labs
from benchbook.sites.external import server

MIB = 1 << 20


def describe_buffer_pools(study: StudySpec, theirs: Mapping[str, server.ExternalServer]) -> list[str]:
    """Lines for `plan`: whether the data fit into the buffer pool of each arm's server.

    None without a password, or with certificates; a server that can't be asked is named.
    """
    asked = study.site.existing
    if asked is None or asked.tls_folder is not None or server.check_password(asked):
        return []
    pools: dict[str, int] = {}
    for arm, of_arm in theirs.items():
        endpoint = study.arms[arm].endpoint or asked
        try:
            pools[arm] = _read(of_arm, (endpoint.host, endpoint.port), study)
        except (BenchbookError, sqlalchemy.exc.SQLAlchemyError, OSError) as error:
            said = " ".join(str(getattr(error, "orig", error)).split())
            return [f"  data        buffer pool of {endpoint.host}:{endpoint.port} not read: {said}"]
    return [compare_sizes(study.dataset.tables, study.dataset.table_size, pools)]


def compare_sizes(tables: int, table_size: int, pools: Mapping[str, int]) -> str:
    """Line that holds the size of the data against the pools, in bytes by arm."""
    size = tables * table_size * ROW_BYTES
    shown = ", ".join(f"{arm} {pool / MIB:,.0f} MiB" for arm, pool in pools.items())
    smallest, largest = min(pools.values()), max(pools.values())
    if size <= smallest:
        # Where they differ much, data between them show it and load soonest.
        is_between = largest >= 3 * smallest
        rows = (2 * smallest if is_between else 1.5 * largest) / (tables * ROW_BYTES)
        step = 10 ** (len(str(int(rows))) - 2)
        fits = "only the larger ones" if is_between else "none"
        return (
            f"  data        {size / MIB:,.0f} MiB fit into every buffer pool ({shown}): a difference of them "
            f"can't show; dataset.table_size: {math.ceil(rows / step) * step} fits into {fits}"
        )
    fitting = [arm for arm, pool in pools.items() if size <= pool]
    where = f"fit into that of {', '.join(fitting)} alone" if fitting else "fit into none"
    return f"  data        {size / MIB:,.0f} MiB; buffer pools: {shown}; the data {where}"


def _read(theirs: server.ExternalServer, place: tuple[str, int], study: StudySpec) -> int:
    asked = study.site.existing
    assert asked is not None
    if asked.password_env is not None:
        account = (asked.user or "", process_env.read_password(asked.password_env))
    else:
        account = labs.read_secret(server.check_account_file(asked), theirs.driver)
    engine = theirs.engine(partial(theirs.connect, place, account, asked.database, None))
    try:
        with engine.connect() as connection:
            return theirs.buffer_pool_bytes(connection)
    finally:
        engine.dispose()
