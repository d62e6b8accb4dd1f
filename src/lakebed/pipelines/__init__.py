"""Pipelines: steps from tables to tables, run on Spark, committed together."""

from lakebed.pipelines.expectations import expect
from lakebed.pipelines.inputs import changes, current, files, jdbc, source
from lakebed.pipelines.pipeline import Pipeline
from lakebed.pipelines.testing import run_pipeline

__all__ = ["Pipeline", "changes", "current", "expect", "files", "jdbc", "run_pipeline", "source"]
