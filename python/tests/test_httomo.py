"""Tests of the method for HTTomo, by HTTomo's own checks of pipelines, its generator of templates and its wrapper.

Needs the packages httomo and httomo_backends, and of what they need, what is imported here: scripts/package/try-wheel.
"""

import contextlib
import importlib.util
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import numpy

import fbp
import fbp.httomo.__main__
from test_module import random_scan

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "python.md"
MODULE = "fbp.httomo.algorithm"


@unittest.skipUnless(importlib.util.find_spec("httomo"), "httomo is not installed")
class Httomo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.place = pathlib.Path(folder.name)
        # a copy of HTTomo's package, so that the installed one stays as it is
        (installed,) = importlib.util.find_spec("httomo_backends").submodule_search_locations
        cls.backends = cls.place / "httomo_backends"
        shutil.copytree(installed, cls.backends, ignore=shutil.ignore_patterns("__pycache__", "fbp"))
        cls.before = cls.files()
        sys.path.insert(0, str(cls.place))
        cls.addClassCleanup(sys.path.remove, str(cls.place))
        cls.command()

    @classmethod
    def files(cls):
        return {path.relative_to(cls.place) for path in cls.backends.rglob("*") if "__pycache__" not in path.parts}

    @classmethod
    def command(cls, *words):
        """Runs the command of the package with the copy, and returns what it prints."""
        code = f"import sys; sys.path.insert(0, {str(cls.place)!r})\nfrom fbp.httomo.__main__ import main; main()"
        run = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
        return run.stdout

    def wrapper(self, **parameters):
        """The method as a pipeline has it."""
        from httomo.method_wrappers import make_method_wrapper
        from httomo.method_wrappers import generic
        from httomo_backends.methods_database.query import MethodDatabaseRepository
        from mpi4py import MPI

        # HTTomo asks CuPy of which kind an array is, also where there is no GPU and no CuPy
        cupy = types.SimpleNamespace(ndarray=numpy.ndarray, get_array_module=lambda array: numpy)
        patched = unittest.mock.patch.object(generic, "xp", cupy)
        patched.start()
        self.addCleanup(patched.stop)
        repository = MethodDatabaseRepository()
        return make_method_wrapper(repository, MODULE, "reconstruct", MPI.COMM_WORLD, None, **parameters)

    def block(self, data, angles):
        from httomo.runner.auxiliary_data import AuxiliaryData
        from httomo.runner.dataset import DataSetBlock

        return DataSetBlock(data.copy(), AuxiliaryData(angles=angles.copy()), slicing_dim=1)

    def test_the_pipeline_on_the_page_is_valid(self):
        from httomo.yaml_checker import validate_yaml_config

        (pipeline,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
        path = self.place / "pipeline.yaml"
        for text, valid in [
            (pipeline, True),
            (pipeline.replace("filter: hann", "fliter: hann"), False),
            (pipeline.replace("method: reconstruct", "method: recon"), False),
        ]:
            path.write_text(text)
            with contextlib.redirect_stdout(io.StringIO()) as said:
                try:
                    found = validate_yaml_config(path)
                except FileNotFoundError:
                    # what it does about an unknown method
                    found = False
            self.assertEqual(found, valid, said.getvalue())

    def test_the_template_is_what_httomo_makes_of_the_method(self):
        import yaml
        from httomo_backends.scripts import yaml_templates_generator as generator

        (self.place / "modules.yaml").write_text(f"- {MODULE}\n")
        # which its command line sets
        generator.output_folder = str(self.place / "made")
        with contextlib.redirect_stdout(io.StringIO()):
            generator.yaml_generator(self.place / "modules.yaml", generator.output_folder)
        made, ours = (self.place / "made" / MODULE / "reconstruct.yaml").read_text(), self.backends / "yaml_templates/fbp"
        self.assertEqual(yaml.safe_load((ours / MODULE / "reconstruct.yaml").read_text()), yaml.safe_load(made))

    def test_blocks_are_reconstructed(self):
        from httomo.method_wrappers.reconstruction import ReconstructionWrapper

        data, angles = random_scan(48, 3, 64), numpy.linspace(0, numpy.pi, 48, endpoint=False)
        words = {"filter": "hann", "stripes": ["dead", "mean"], "flags": {"filter_cutoff": 0.75}}
        method = self.wrapper(center=numpy.float32(30.25), **words)
        self.assertIsInstance(method, ReconstructionWrapper)
        self.assertTrue(method.is_cpu and method.save_result and method.output_dims_change)
        found = method.execute(self.block(data, angles)).data
        words["filter_cutoff"] = words.pop("flags")["filter_cutoff"]
        expected = fbp.reconstruct(data, None, 30.25, angles_rad=angles, minus_log=False, **words)
        self.assertEqual(found.shape, (64, 3, 64))
        self.assertTrue(numpy.array_equal(found, expected.swapaxes(0, 1)))

    def test_shapes_are_known_before(self):
        data, angles = random_scan(48, 2, 64), numpy.linspace(0, numpy.pi, 48, endpoint=False)
        for parameters in [{}, {"recon_size": 40}, {"roi": [8, 4, 32, 24]}, {"recon_size": 40, "roi": [8, 4, 16, 24]}]:
            with self.subTest(**parameters):
                method = self.wrapper(**parameters)
                height, rows, width = method.execute(self.block(data, angles)).data.shape
                self.assertEqual((method.calculate_output_dims((48, 64)), rows), ((height, width), 2))

    def test_errors_are_those_of_the_module(self):
        data = random_scan(48, 2, 64)
        with self.assertRaisesRegex(fbp.UsageError, "hamm"):
            self.wrapper(filter="hamm").execute(self.block(data, numpy.arange(48.0)))
        with self.assertRaises(ValueError):
            self.wrapper(fliter="hann")

    def test_nothing_is_left_by_remove(self):
        with tempfile.TemporaryDirectory() as other:
            root = pathlib.Path(other) / "httomo_backends"
            shutil.copytree(self.backends, root)
            done = fbp.httomo.__main__.place(root, True)
            left = {path.relative_to(other) for path in root.rglob("*") if "__pycache__" not in path.parts}
            self.assertEqual((len(done), left), (3, self.before))
            self.assertEqual(fbp.httomo.__main__.place(root, True), [])
        self.assertEqual(len(self.command().splitlines()), 3)


if __name__ == "__main__":
    unittest.main()
