"""The only bytes: a warehouse root in a local folder or in memory, behind one seam."""

from lakebed.storage.base import Output, Stat, Storage, safe_path
from lakebed.storage.open import open_storage

__all__ = ["Output", "Stat", "Storage", "open_storage", "safe_path"]
