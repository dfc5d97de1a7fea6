"""The broker versions that tests run on: two in every run, the others in the long one (MIRRORPID_LONG=1)."""

import os
import unittest

IS_LONG = bool(os.environ.get("MIRRORPID_LONG"))
VERSIONS = ("4.4.0", "3.9.2", *(("4.0.2", "3.7.2") if IS_LONG else ()))


def on_each_version(module, *mixins):
    """Test classes of each mixin, one a version, for the module whose globals() these are. Their `version` says which."""
    for mixin in mixins:
        for version in VERSIONS:
            name = f"{mixin.__name__}OnKafka{''.join(version.split('.')[:2])}"
            module[name] = type(name, (mixin, unittest.TestCase), {"version": version, "__module__": module["__name__"]})
