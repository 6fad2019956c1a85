"""Tests of the Python module beside the program that comes with it: the same values, in place, stopped, and errors.

    python -m unittest discover -s python/tests

Needs the installed package (or PYTHONPATH), NumPy, and an OpenCL device. FBP_PROGRAM is the program, if it is another
one than that of the package.
"""

import array
import json
import logging
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock
import warnings

import numpy

import fbp

PROGRAM = os.environ.get("FBP_PROGRAM") or fbp.program()
NATIVE = "<" if sys.byteorder == "little" else ">"


def program(*words):
    """Runs the program, and returns what it prints."""
    return subprocess.run([PROGRAM, *map(str, words)], check=True, capture_output=True, text=True).stdout


def child(code, **kinds):
    """Starts Python with code that may use `fbp`, `numpy` and `random_scan`."""
    head = "import sys; sys.path.insert(0, %r); import fbp, numpy; from test_module import random_scan\n"
    here = str(pathlib.Path(__file__).parent)
    return subprocess.Popen([sys.executable, "-c", head % here + code], text=True, stdout=subprocess.PIPE, **kinds)


def random_scan(projections, rows, bins, kind="f4"):
    values = numpy.random.default_rng(1).random((projections, rows, bins), dtype=numpy.float32)
    return (values * (200 if kind[-1] == "1" else 2000) if kind[0] == "u" else values).astype(kind)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.place = pathlib.Path(cls.folder.name)

    def by_program(self, data, *words, order="projections"):
        """The slices that the program makes of an array."""
        numpy.save(self.place / "data.npy", data)
        output = self.place / "slices.npy"
        files = [f"--{order}", self.place / "data.npy", "--output", output, "--overwrite"]
        program("reconstruct", *files, "--quiet", *words)
        return numpy.load(output)

    def phantom(self, size, projections, slices, *words):
        """Writes a scan of counts, and returns its paths by the names of flags."""
        places = {name: self.place / f"{name}-{size}" for name in ("projections", "flats", "darks")}
        counts = ["--as", "projections", "--photons", 20000, "--flats", places["flats"], "--darks", places["darks"]]
        shape = ["--size", size, "--projections", projections, "--slices", slices]
        program("phantom", *shape, *counts, *words, "--output", places["projections"])
        return places

    def same(self, a, b):
        self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
        self.assertTrue(numpy.array_equal(a, b), "the values differ")


class Reconstructions(Case):
    def test_slices_are_those_of_the_program(self):
        data = random_scan(64, 512, 512)
        slices = fbp.reconstruct(data, center=250.25, rows=slice(100, 164), filter="hann")
        self.assertEqual(slices.shape, (64, 512, 512))
        self.same(slices, self.by_program(data, "--center", 250.25, "--rows", "100..164", "--filter", "hann"))

    def test_every_type_and_order(self):
        for kind in ["u1", "u2", ">u2", "i4", "f4", ">f4", "f8", "f2"]:
            data = random_scan(48, 3, 64, kind.lstrip(">")).astype(kind)
            with self.subTest(kind):
                self.same(fbp.reconstruct(data), self.by_program(data))
        data = random_scan(5, 48, 64)
        slices = fbp.reconstruct(data, order="sinograms")
        self.same(slices, self.by_program(data, order="sinograms"))
        self.same(fbp.reconstruct(data[2], order="sinograms"), slices[2:3])
        # the same scan with its axes exchanged, without a copy
        self.same(fbp.reconstruct(data.transpose(1, 0, 2)), slices)

    def test_parts_of_arrays(self):
        whole = random_scan(96, 8, 160)
        parts = {"step": whole[::2, 1::3, 30:94], "flipped": whole[:, :, ::-1], "reversed": whole[::-1]}
        parts["fortran"] = whole.copy("F")
        for name, part in parts.items():
            with self.subTest(name):
                self.same(fbp.reconstruct(part), fbp.reconstruct(part.copy("C")))
                self.assertEqual(fbp._arrays.frames(part, "data", "", False) is part, name == "step")

    def test_other_objects_with_memory(self):
        data = random_scan(48, 2, 64)

        class Tensor:
            def __dlpack__(self, **kinds):
                return data.__dlpack__(**kinds)

            def __dlpack_device__(self):
                return data.__dlpack_device__()

        class Interface:
            __array_interface__ = data.__array_interface__

        expected = fbp.reconstruct(data)
        view = memoryview(array.array("f", data.ravel().tolist())).cast("B").cast("f", data.shape)
        for other in [Tensor(), Interface(), view, data.tolist()]:
            with self.subTest(type(other).__name__):
                self.same(fbp.reconstruct(other), expected)
        self.assertTrue(numpy.shares_memory(fbp._arrays.array_of(Tensor(), "data"), data))

    def test_counts_with_fields_angles_and_shifts(self):
        places = self.phantom(96, 80, 6, "--center", 50.5)
        scan = fbp.open(**places)
        self.assertEqual((scan.data.dtype, scan.data.shape), (numpy.uint16, (80, 6, 96)))
        angles = numpy.linspace(0, 180, 80, endpoint=False) + 0.01 * numpy.arange(80)
        shifts = 0.5 * numpy.sin(numpy.arange(80))
        numpy.savetxt(self.place / "angles.txt", angles, fmt="%.17g")
        numpy.savetxt(self.place / "shifts.txt", shifts, fmt="%.17g")
        files = [word for name, place in places.items() for word in (f"--{name}", place)]
        texts = ["--angles", self.place / "angles.txt", "--center-shifts", self.place / "shifts.txt"]
        output = self.place / "of-files.npy"
        flags = ["--center", 50.5, "--stripes", "dead", "--stripes", "mean", "--quiet"]
        program("reconstruct", *files, *texts, *flags, "--output", output)
        fields = {"flats": scan.flats, "darks": scan.darks}
        more = {"center_shifts": shifts, "stripes": ["dead", "mean"]}
        self.same(fbp.reconstruct(scan.data, angles, 50.5, **fields, **more), numpy.load(output))
        in_radians = fbp.reconstruct(scan.data, None, 50.5, angles_rad=numpy.radians(angles), **fields, **more)
        self.assertTrue(numpy.allclose(in_radians, numpy.load(output), atol=1e-5))

        found = fbp.find_center(scan.data, **fields)
        told = json.loads(program("center", *files, "--json"))["center"]
        self.assertEqual((found.value, found.sd, found.verdict), (told["value"], told["uncertainty"], told["verdict"]))
        self.assertAlmostEqual(found.value, 50.5, delta=0.2)

        program("preprocess", *files, "--output", self.place / "corrected.npy")
        self.same(fbp.preprocess(scan.data, **fields), numpy.load(self.place / "corrected.npy"))
        self.same(fbp.preprocess(scan.data, rows="1..3", **fields), numpy.load(self.place / "corrected.npy")[:, 1:3])

    def test_files_are_read_as_they_are_stored(self):
        places = self.phantom(64, 40, 4)
        files = [word for name, place in places.items() for word in (f"--{name}", place)]
        program("preprocess", *files, "--output", self.place / "scan.h5")
        stored = fbp.open(**places)
        corrected = fbp.preprocess(stored.data, flats=stored.flats, darks=stored.darks)
        scan = fbp.open(self.place / "scan.h5", hdf5_data="/entry/reconstruction/results/data", overall_angle=180)
        self.same(scan.data, corrected)
        self.assertEqual((scan.flats, scan.darks, scan.angles), (None, None, None))
        binned = fbp.open(projections=places["projections"], binning=2)
        whole = stored.data.astype(numpy.float32)
        self.assertEqual(binned.data.dtype, numpy.float32)
        self.assertTrue(numpy.allclose(binned.data, whole.reshape(40, 2, 2, 32, 2).mean((2, 4)), rtol=1e-6))
        with self.assertRaisesRegex(fbp.InputError, "nowhere"):
            fbp.open(self.place / "nowhere.h5")

    def test_results_are_written_in_place(self):
        data = random_scan(48, 6, 64)
        expected = fbp.reconstruct(data, rows=range(1, 6, 2), roi=(8, 16, 32, 24))
        whole = numpy.full((5, 24, 32), -1, numpy.float32)
        out = whole[1:4]
        self.assertIs(fbp.reconstruct(data, rows="1..6:2", roi="8,16,32,24", out=out), out)
        self.same(out, expected)
        self.assertTrue((whole[[0, 4]] == -1).all())
        read_only = numpy.empty((6, 64, 64), numpy.float32)
        read_only.flags.writeable = False
        strided = numpy.empty((6, 64, 128), "f4")[:, :, ::2]
        for wrong in [numpy.empty((6, 64, 63), "f4"), numpy.empty((6, 64, 64), "f8"), strided, read_only, [1]]:
            with self.assertRaisesRegex(fbp.UsageError, "^out: .*;"):
                fbp.reconstruct(data, out=wrong)
        square = numpy.ones((64, 64, 64), numpy.float32)
        with self.assertRaisesRegex(fbp.UsageError, "shares memory"):
            fbp.reconstruct(square, out=square)

    def test_a_reconstructor_keeps_its_keywords(self):
        data = random_scan(48, 2, 64)
        reconstruct = fbp.Reconstructor(center=30, filter="hann")
        self.same(reconstruct(data), fbp.reconstruct(data, center=30, filter="hann"))
        self.same(reconstruct(data, center=31.5), fbp.reconstruct(data, center=31.5, filter="hann"))
        self.assertIn("center=30", repr(reconstruct))


class Messages(Case):
    def refused(self, kind, words, *arguments, **keywords):
        with self.assertRaises(kind) as caught:
            fbp.reconstruct(*arguments, **keywords)
        self.assertIsInstance(caught.exception, fbp.FbpError)
        for word in words:
            self.assertIn(word, str(caught.exception))
        return caught.exception

    def test_wrong_arguments_are_refused(self):
        data = random_scan(12, 2, 32)
        usage, wrong = fbp.UsageError, fbp.InputError
        self.assertEqual(self.refused(usage, ["order", "'rows'"], data, order="rows").exit_code, 2)
        self.refused(usage, ["(12, 2)", "3 axes", ";"], data[:, :, 0])
        self.refused(usage, ["(12, 2, 32, 1)", ";"], data[..., None])
        self.refused(ValueError, ["not an array", ";"], [[1, 2], [3]])
        self.refused(wrong, ["--projections", "|b1", "float32"], data > 0)
        self.refused(wrong, ["--projections", "|O", "float32"], numpy.full((2, 2, 2), None))
        self.refused(wrong, ["0 x 2 x 32"], data[:0])
        self.refused(wrong, ["11", "12"], data, numpy.arange(11))
        self.refused(wrong, ["--angles", "value 3", "NaN"], data, [0, 1, 2, numpy.nan])
        self.refused(usage, ["angles", "one axis", ";"], data, data)
        self.refused(usage, ["angles", "numbers"], data, "angles.txt")
        self.refused(usage, ["angles_rad", "one of them"], data, numpy.arange(12), angles_rad=numpy.arange(12))
        self.refused(usage, ["--angles", "--overall-angle"], data, numpy.arange(12), overall_angle=180)
        self.refused(wrong, ["flats", "31"], data, flats=numpy.ones((3, 2, 31)))
        self.refused(usage, ["--darks", "flats"], data, darks=numpy.ones((3, 2, 32)))
        self.refused(usage, ["--flats", "--sinograms"], data, order="sinograms", flats=data)
        self.refused(wrong, ["--center-shifts", "inf"], data, center_shifts=[0, numpy.inf])

    def test_flags_are_those_of_the_program(self):
        data = random_scan(12, 2, 32)
        usage = fbp.UsageError
        self.refused(usage, ["'hamm'", "--filter", "hamming"], data, filter="hamm")
        self.refused(usage, ["--fliter", "--filter"], data, fliter="hann")
        self.refused(usage, ["--center", "middle"], data, center="middle")
        self.refused(usage, ["--rows", "0..2"], data, rows=slice(1, 5))
        self.refused(usage, ["rows", "no end"], data, rows=slice(1, None))
        self.refused(usage, ["--roi"], data, roi=(1, 2, 3))
        self.refused(usage, ["size", "None"], data, size=[None])
        self.refused(fbp.DeviceError, ["--device", "no such device"], data, device="no such device")
        for flag in ["output", "dtype", "config", "projections", "verbose", "report"]:
            self.refused(usage, [f"--{flag}", "leave it out"], data, **{flag: "x"})
        self.refused(usage, ["--binning", "40"], data, binning=40)
        self.refused(usage, ["--normalize-air", "--minus-log"], data, normalize_air=(2, 2), minus_log=False)
        binned = fbp.reconstruct(data + 1, binning=2, minus_log=True, mask=True, normalize_air=(2, 2))
        self.assertEqual((binned.shape, binned[0, 0, 0]), ((1, 16, 16), 0))

    def test_doubts_are_warnings(self):
        data = random_scan(12, 2, 32)
        data[3, 1, 7] = numpy.nan
        with self.assertWarnsRegex(fbp.DataWarning, "1 values of 768 were replaced") as caught:
            fbp.reconstruct(data)
        self.assertEqual(caught.filename, __file__)
        self.refused(fbp.InputError, ["replaced-values"], data, strict=True)
        self.refused(fbp.InputError, [], numpy.full((12, 2, 32), numpy.nan, numpy.float32))
        with self.assertWarnsRegex(fbp.DataWarning, "radians"):
            fbp.reconstruct(data, numpy.linspace(0, numpy.pi, 12))
        with self.assertLogs("fbp", logging.INFO) as logs, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fbp.reconstruct(numpy.ones((12, 2, 32), "u2"), flats=numpy.full((1, 2, 32), 2, "u2"))
        self.assertIn("no --darks", "".join(logs.output))

    def test_exceptions_have_exit_codes(self):
        codes = {1: fbp.CheckError, 2: fbp.UsageError, 3: fbp.InputError, 4: fbp.DeviceError, 5: fbp.OutputError}
        codes[75] = fbp.StoppedError
        for code, kind in codes.items():
            self.assertIs(type(fbp.errors.of_exit_code(code, "x")), kind)
            self.assertEqual(kind.exit_code, code)

    def test_progress_is_shown(self):
        data = random_scan(24, 12, 64)
        seen = []
        fbp.reconstruct(data, progress=lambda done, total: seen.append((done, total)))
        self.assertEqual((seen[-1], sorted(seen)), ((12, 12), seen))

        class Bar:
            n, total, closed = 0, None, 0

            def __init__(self, unit):
                bars.append(self)

            def update(self, count):
                self.n += count

            def close(self):
                self.closed += 1

        bars = []
        tqdm = types.SimpleNamespace(tqdm=Bar)
        with unittest.mock.patch.dict(sys.modules, {"tqdm": types.ModuleType("tqdm"), "tqdm.auto": tqdm}):
            fbp.preprocess(data, progress=True)
        self.assertEqual([(bar.n, bar.total, bar.closed) for bar in bars], [(24, 24, 1)])

        def fail(done, total):
            raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            fbp.reconstruct(data, progress=fail)


class Processes(Case):
    def test_threads_run_at_the_same_time(self):
        scans = [random_scan(48, rows, 128) for rows in (3, 5, 4, 2)]
        expected = [fbp.reconstruct(scan) for scan in scans]
        results = [None] * len(scans)

        def work(i):
            for _ in range(3):
                results[i] = fbp.reconstruct(scans[i])

        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(scans))]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        for result, slices in zip(results, expected):
            self.same(result, slices)

    def test_python_goes_on_meanwhile(self):
        data, beats = random_scan(128, 48, 256), []
        running = threading.Event()
        thread = threading.Thread(target=lambda: (fbp.reconstruct(data, rows="0..24"), running.set()))
        thread.start()
        while not running.wait(0.005):
            beats.append(1)
        thread.join()
        self.assertGreater(len(beats), 5)

    def test_nothing_grows_in_1000_calls(self):
        data, reconstruct = random_scan(16, 2, 64), fbp.Reconstructor(center=31)
        out = numpy.empty((2, 64, 64), numpy.float32)

        def used():
            pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
            # threads of the last call may still be ending
            counts = [[len(os.listdir(f"/proc/self/{what}")) for what in ("task", "fd")]]
            for _ in range(20):
                time.sleep(0.01)
                counts.append([len(os.listdir(f"/proc/self/{what}")) for what in ("task", "fd")])
            return pages * resource.getpagesize(), min(counts)

        for _ in range(50):
            reconstruct(data, out=out)
        # what grows goes on growing, while the allocator's pools come to an end
        for _ in range(3):
            (before, counts), calls = used(), 1000
            for _ in range(calls):
                reconstruct(data, out=out)
            after, counts_after = used()
            if after - before < 4 << 20:
                break
        # the slices of a call have 32 KiB
        self.assertLess(after - before, 4 << 20, f"{(after - before) / calls:.0f} bytes for each call")
        self.assertEqual(counts_after, counts, "threads and open files")

    def test_the_input_is_not_copied(self):
        code = (
            "import resource\n"
            "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10\n"
            "keywords = dict(size=64, memory='64M', device_memory='64M', filter='hann')\n"
            "fbp.reconstruct(random_scan(64, 8, 1024), **keywords)\n"
            "data = numpy.ones((64, 2048, 1024), 'f4')\n"
            "before = peak()\n"
            "fbp.reconstruct(data, **keywords)\n"
            "print(before, peak())\n"
        )
        before, peak = map(int, child(code).communicate()[0].split())
        self.assertGreater(before, 512)
        # the slices have 32 MiB, and the run may use 64 MiB twice
        self.assertLess(peak - before, 256, f"{before} MiB, then {peak} MiB")

    def test_ctrl_c_stops(self):
        code = (
            # what a shell starts in the background begins with the signal ignored
            "import signal\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "data = random_scan(256, 512, 256)\n"
            "small = fbp.reconstruct(data[:, :2])\n"
            "try:\n"
            "    fbp.reconstruct(data, progress=lambda done, total: print('go', flush=True))\n"
            "except KeyboardInterrupt:\n"
            "    print('stopped', numpy.array_equal(small, fbp.reconstruct(data[:, :2])), flush=True)\n"
        )
        with tempfile.TemporaryDirectory() as cache:
            # without stored programs, so that the driver compiles
            running = child(code, env={**os.environ, "FBP_CACHE_DIR": cache, "POCL_CACHE_DIR": cache})
            self.assertEqual(running.stdout.readline(), "go\n")
            running.send_signal(signal.SIGINT)
            rest, _ = running.communicate(timeout=60)
        self.assertEqual((rest.splitlines()[-1], running.returncode), ("stopped True", 0))


class Conversions(unittest.TestCase):
    def test_axis_and_angles_of_other_programs(self):
        convert = fbp.convert
        self.assertEqual(convert.from_tofu(1024.0), (1023.5, None))
        self.assertEqual(convert.from_tofu(1024.0, overall_angle=180, projections=4).angles.tolist(), [0, 45, 90, 135])
        steps = convert.from_tofu(angle_step=numpy.pi / 4, projections=3)
        self.assertTrue(steps.center is None and numpy.allclose(steps.angles, [0, 45, 90]))
        self.assertEqual(convert.from_tomopy(bins=64).center, 32)
        self.assertTrue(numpy.allclose(convert.from_tomopy(31.5, [0, numpy.pi]).angles, [0, 180]))
        self.assertEqual(convert.from_nabu(31.5, [0, 1]).angles.tolist(), [0, 1])
        with self.assertRaisesRegex(fbp.UsageError, "projections"):
            convert.from_tofu(1024, overall_angle=180)


if __name__ == "__main__":
    unittest.main()
