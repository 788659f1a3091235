"""Loaded when a Python of the project starts: records unittest's results where unittest is used."""

import os
import sys
from importlib.machinery import PathFinder


class _Listen:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "unittest.result":
            return None
        sys.meta_path.remove(cls)
        spec = PathFinder.find_spec(name, path)
        run = spec.loader.exec_module

        def exec_module(module):
            import regreen_listen

            run(module)
            regreen_listen.unittest_result(module.TestResult)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _Listen)

# The sitecustomize that would have been loaded without this one.
_HERE = os.path.dirname(os.path.abspath(__file__))
_OTHER = PathFinder.find_spec(
    "sitecustomize", [path for path in sys.path if os.path.abspath(path) != _HERE]
)
if _OTHER is not None:
    from importlib.util import module_from_spec

    _OTHER.loader.exec_module(module_from_spec(_OTHER))
