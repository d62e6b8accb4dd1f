"""Loads a pipeline from a file of the user's; what goes wrong there is told with its line."""

import runpy
import sys
from pathlib import Path

from pyspark import cloudpickle

from lakebed.model.errors import LakebedError, MissingExtra, PipelineInvalid
from lakebed.pipelines.failures import user_line
from lakebed.pipelines.pipeline import Pipeline


def load_pipeline(path: Path, name: str | None = None) -> Pipeline:
    """The pipeline that a file makes; `name` chooses where there are several."""
    if not path.is_file():
        raise PipelineInvalid(f"there is no file {path}", hint="lakebed run FILE.py")
    found = _pipelines(_run_file(path))
    if name is not None:
        found = [p for p in found if p.name == name]
    if len(found) == 1:
        return found[0]
    if not found:
        what = f"no pipeline {name!r}" if name else "no pipeline"
        raise PipelineInvalid(f"{path} makes {what}", hint='write: p = Pipeline("sales")')
    names = ", ".join(p.name for p in found)
    raise PipelineInvalid(
        f"{path} makes several pipelines: {names}", hint="choose one: --pipeline NAME"
    )


def _pipelines(made: dict[str, object]) -> list[Pipeline]:
    distinct = {id(value): value for value in made.values() if isinstance(value, Pipeline)}
    return list(distinct.values())


def _run_file(path: Path) -> dict[str, object]:
    # Modules beside the file are found as when Python runs it; its __main__ part does not run.
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        made = runpy.run_path(str(path), run_name=f"lakebed_pipeline_{path.stem}")
        _take_along(Path(folder))
        return made
    except LakebedError as error:
        place = user_line(error, str(path))
        raise type(error)(f"{place}: {error.message}", hint=error.hint, **error.context) from error
    except ImportError as error:
        if error.name in ("pyspark", "py4j"):
            raise MissingExtra(
                "PySpark is not installed", hint="pip install 'lakebed[spark]'"
            ) from error
        raise _broken(path, error) from error
    except (Exception, SystemExit) as error:
        raise _broken(path, error) from error
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _take_along(folder: Path) -> None:
    """Functions of modules beside the file travel to Spark's workers, which do not have them."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        own = (folder / f"{name}.py", folder / name / "__init__.py")
        if file is not None and Path(file).resolve() in own:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # has no types


def _broken(path: Path, error: BaseException) -> PipelineInvalid:
    place = user_line(error, str(path))
    return PipelineInvalid(
        f"{place}: {type(error).__name__}: {error}",
        hint="the file must run by itself: python FILE.py",
        place=place,
    )
