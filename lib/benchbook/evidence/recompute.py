"""A session recomputed from its archive, in this process, by the calls of 05_parse and 06_analyze."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from benchbook.compare.claims import evaluate
from benchbook.compare.inference import findings, metrics_export, setup_notes
from benchbook.core.artifacts import artifact
from benchbook.core.artifacts.artifact import blank_wording
from benchbook.core.artifacts.findings import Findings
from benchbook.core.study import load
from benchbook.core.study.params import Params
from benchbook.core.study.validation_errors import validate_document
from benchbook.core.util import files, numeric_equality, parallel, paths, yaml_file
from benchbook.core.util.errors import BenchbookError
from benchbook.evidence import archive
from benchbook.read import published, tidy
from benchbook.show.markup import strip_control

# What analyze leaves and an archive carries.
MADE = ("findings.json", "metrics.json")
# Keys of findings that archives of earlier releases don't have.
ADDED = frozenset({"aa_others"})


def compare_results(study: str, root: Path, cores: int | None = None) -> tuple[str, ...]:
    """Parse and analyze the files below `root`, over some cores (None: all); return differences from the
    archive's results. BenchbookError with what is missing, or with what the stages say of these files."""
    require_complete(study, root)
    where = paths.StudyPaths(study, root)
    claimed = {name: (where.data / name).read_bytes() for name in MADE}
    for name in MADE:
        (where.data / name).unlink()
    try:
        with paths.use_root(root):
            params = validate_document(yaml_file.read_mapping(root / "params.yaml", "params.yaml"), Params)
            named = ("run_id", "block", "position", "arm", "workload", "threads")
            runs = files.read_csv(where.schedule, *named)
            # As 05_parse does.
            with parallel.map_tasks(len(runs), cores) as each:
                tidy.parse_study(where.raw, where.void, runs, where.tidy, params.limits.model_dump(), each)
            analyze_study(where, params)
    except MemoryError:
        raise
    except Exception as error:
        # Whatever files that nobody here made do to parse and analyze.
        kind = "" if isinstance(error, BenchbookError) else f"{type(error).__name__}: "
        what = "every hash is right, but the stages parse and analyze failed on these files"
        raise BenchbookError(f"{what}: {kind}{strip_control(error)}") from error
    return tuple(find_differences(claimed, where.data))


def require_complete(study: str, root: Path) -> None:
    """Raise BenchbookError with the list of files that an unpacked archive lacks."""
    where = paths.StudyPaths(study, root)
    due = [where.file, root / "params.yaml", root / archive.README]
    due += [where.data / name for name in archive.PARTS]
    if absent := [path.relative_to(root).as_posix() for path in due if not path.is_file()]:
        raise BenchbookError(f"{study}: no {', '.join(absent)} in the archive")


def analyze_study(where: paths.StudyPaths, params: Params) -> None:
    """Make findings, metrics and plots of a study from its tidy tables, as 06_analyze does."""
    spec, study = load.study_file(where.file), where.name
    shown = published.resolve_claims(setup_notes.illustrated_claims(spec))
    put = evaluate.assign_claims(spec, published.resolve_claims(spec.claims), shown)
    tables = tidy.load_tables(where.tidy, *findings.required_tables(spec, params.analysis, put))
    left = artifact.read_facts(study), artifact.read_dataset(study)
    from_stages = findings.build_from_stages(study, spec, tables, params.analysis, put, shown, *left)
    from_stages.write(where.findings)
    files.write_json(where.metrics, metrics_export.export_metrics(from_stages))
    files.write_csv(where.plots / "effects.csv", metrics_export.by_threads(from_stages))
    files.write_csv(where.plots / "blocks.csv", metrics_export.by_block(spec, tables["runs"]))


def find_differences(claimed: Mapping[str, bytes], data: Path) -> Iterator[str]:
    """Values of findings and metrics that are not as they were; texts that follow from others are none."""
    for name, before in claimed.items():
        pair = [files.parse_json(text) for text in (before, (data / name).read_bytes())]
        if name == "findings.json":
            pair = [blank_wording(Findings, document) for document in pair]
            before_keys = set(pair[0]) if isinstance(pair[0], dict) else set()
            pair[1] = {key: value for key, value in pair[1].items() if key not in ADDED - before_keys}
        for item in pair:
            # With which release findings were made is no finding: a new one would leave nothing as recorded.
            if isinstance(item, dict):
                item.pop("made_by", None)
        decimals = numeric_equality.DECIMALS.get(name)
        for text in numeric_equality.diff_documents(pair[0], pair[1], decimals):
            yield f"{name}: {text}"
