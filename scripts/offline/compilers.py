"""Compilers that need no device: what they make of a kernel, kept by all that leads to it.

The text of this file is part of the key of each result, so it has nothing in it that only judges or shows results.
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
from collections import namedtuple

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "offline"
# by the text of all that leads to a result, for all checkouts of a user (scripts/checked)
RESULTS = pathlib.Path(os.environ.get("FBP_CHECKED")
                       or pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "fbp-checked") / "offline"

SECONDS, BYTES = 60, 4 << 30  # of one compiler run; r600's register allocator can take all memory there is
# clang-15 is the newest that agrees with the packaged libraries for r600 and SPIR-V
OLD_CLANG, NEW_CLANG = "clang-15", "clang-19"
OLD_PTXAS, NEW_PTXAS = CACHE / "ptxas-11.8.89", CACHE / "ptxas-12.9.86"
TOOLS = OLD_CLANG, NEW_CLANG, "llvm-spirv-15", "spirv-val", OLD_PTXAS, NEW_PTXAS
LIBCLC = "/usr/lib/clc"
AMD_LIBRARY = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode"
PTX_CALL = r"^\.extern \.func"
SPIR, PTX, VLIW = "spir64-unknown-unknown", "nvptx64--nvidiacl", "r600--"

# What a kernel is compiled for. `group` and `local`: the device's largest work-group, and local memory in bytes.
Target = namedtuple("Target", "compile group local ptx ptxas assembled_for registers", defaults=(None, None, None, None))
Kernel = namedtuple("Kernel", "name options group text")


class Failed(Exception):
    """A check that does not hold, and why."""


def run(*command):
    """What a command says; limited in memory and time."""
    try:
        done = subprocess.run(["prlimit", f"--as={BYTES}", *map(str, command)],
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        code, said = 124, f"error: not done after {SECONDS} s"
    if code:
        lines = said.splitlines()
        lines = [line for line in lines if re.search("error|fatal|warning", line, re.I)] or lines or [f"exit code {code}"]
        raise Failed("\n".join(lines[:4] + [" ".join(map(str, command))]))
    return said


def linked(*libraries):
    """Options that declare the built-in functions and link their bodies."""
    options = ["-Xclang", "-finclude-default-header"]
    for library in libraries:
        options += ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", library]
    return options


class Source:
    """A kernel on its way through compilers, in a directory of its own."""

    def __init__(self, kernel, code, target, directory):
        self.directory = pathlib.Path(directory)
        self.path = self.directory / "kernel.cl"
        self.path.write_text(kernel.text)
        self.reads_images = "read_image" in code
        self.has_ptx = re.search(r"\basm\b|\b__asm(__)?\b", code) is not None
        self.has_built_in = "__builtin_" in code
        self.has_sub_groups = "sub_group_shuffle" in code
        self.sizes_sub_groups = "#define WARP_ATTRIBUTE" in kernel.text
        self.matrix_function = next(iter(re.findall(r"^#define MATRIX_FUNCTION (\w+)$", kernel.text, re.M)), None)
        self.extensions = {"cl_khr_byte_addressable_store", *re.findall(r"EXTENSION (\w+) *: *enable", code)}
        # options of NVIDIA's driver; only the number of registers has a counterpart
        known = [option for option in options_of(kernel, target) if not option.startswith("-cl-nv-")]
        self.options = ["-x", "cl", *known, *(["-fgnu-keywords"] if self.has_ptx else [])]
        self.registers = asked_registers(kernel)

    def clang(self, compiler, target, output, *more):
        """Compiles into a file; returns its path."""
        output = self.directory / output
        run(compiler, "-target", target, *self.options, *more, "-o", output, self.path)
        return output


def options_of(kernel, target):
    """Those of the kernel's options that make a difference to a target: checks do not optimise, and only NVIDIA's
    assembler takes a number of registers."""
    return tuple(option for option in kernel.options
                 if option.startswith("-cl-std=") or target.compile not in (lint, spir_v)
                 and (target.compile is nvidia or not option.startswith("-cl-nv-")))


def preprocessed(text, version):
    """What the compiler gets to see: many kernels differ in comments, and in defines that nothing asks for."""
    known = place_of("cl", version, text)
    if known.exists():
        return known.read_text()
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "kernel.cl"
        path.write_text(text)
        try:
            code = run(OLD_CLANG, "-target", SPIR, "-x", "cl", "-cl-no-stdinc", "-Wundef", "-Werror", "-E", "-P", path)
        except Failed as failed:
            sys.exit(f"{text.partition(chr(10))[0]} {failed}")
    keep(known, code)
    return code


def place_of(kind, *content):
    """Where a result is kept, by all that decides about it."""
    return RESULTS / f"{hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]}.{kind}"


def keep(path, text):
    """Writes a file that appears complete."""
    unfinished = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    unfinished.write_text(text)
    unfinished.rename(path)


def asked_registers(kernel):
    """Registers that the profile asks for; 0 when it leaves them to the compiler."""
    return next((int(option.partition("=")[2]) for option in kernel.options if "maxrregcount" in option), 0)


def lint(source, _target, _name):
    """Warnings, as OpenCL C 1.1 and 1.2 without extensions; clang knows the sub-group shuffles from 2.0 on."""
    extensions, standards, more = source.extensions, ("CL1.1", "CL1.2"), []
    if source.has_sub_groups:
        extensions, standards, more = extensions | {"cl_khr_subgroups"}, ("CL2.0",), ["-Wno-ignored-pragmas"]
    allowed = ",".join(["-all", *sorted(f"+{name}" for name in extensions)])
    for standard in standards:
        run(OLD_CLANG, "-target", PTX if source.has_ptx else SPIR, *source.options, f"-cl-std={standard}", *linked(),
            "-Xclang", f"-cl-ext={allowed}", "-Wall", "-Wextra", "-Wno-unused-parameter", *more, "-Werror",
            "-fsyntax-only", source.path)
    return {}


def spir_v(source, _target, _name):
    """Structure. Without optimisation, because the translator breaks some optimised loops."""
    bitcode = source.clang(OLD_CLANG, SPIR, "kernel.bc", "-O0", *linked(), "-emit-llvm", "-c")
    module = source.directory / "kernel.spv"
    # a size of sub-groups is newer; OpenCL C 2.0 has pointers without an address space
    environment = "opencl2.0" if "-cl-std=CL2.0" in source.options else "opencl1.2"
    version, environment = ("1.1", "spv1.1") if source.sizes_sub_groups else ("1.0", environment)
    run("llvm-spirv-15", f"--spirv-max-version={version}", bitcode, "-o", module)
    run("spirv-val", "--target-env", environment, module)
    listing = run("spirv-dis", module)
    for capability, extension in ("Float64", "cl_khr_fp64"), ("Float16", "cl_khr_fp16"):
        if f"OpCapability {capability}\n" in listing and extension not in source.extensions:
            raise Failed(f"needs {capability}, which devices may lack")
    without_body = re.findall(r'LinkageAttributes "((?!__spirv_)[^"]+)" Import', listing)
    # the function for matrices that only the device's own compiler has
    without_body = [name for name in without_body if not source.matrix_function or source.matrix_function not in name]
    if without_body:
        raise Failed(f"no body ('inline' functions have none where they are not inlined): {' '.join(without_body)}")
    return {}


def gcn(source, _target, name):
    """AMD GCN, CDNA, RDNA."""
    listing = source.clang(NEW_CLANG, "amdgcn-amd-amdhsa", "kernel.s", f"-mcpu={name}", "-O3", "-S",
                           f"--rocm-device-lib-path={AMD_LIBRARY}").read_text()

    def most(key):
        return largest(rf"^    \.{key}: +(\d+)$", listing)

    return {
        "registers": f"{most('vgpr_count')} / {most('sgpr_count')}",
        "local": most("group_segment_fixed_size"),
        "spills": max(most("private_segment_fixed_size"), 4 * most("vgpr_spill_count"), 4 * most("sgpr_spill_count")),
        "images": len(re.findall(r"^\timage_(?:sample|load|gather)", listing, re.M)),
        "calls": len(re.findall(r"s_swappc_b64|gotpcrel32@lo", listing)),
    }


def vliw(source, _target, name):
    """AMD VLIW: the listing has a table of hardware registers and their values."""
    # clang may make vectors of three values of neighbouring ones, which its own code generator cannot select here
    listing = source.clang(OLD_CLANG, VLIW, "kernel.s", f"-mcpu={name}", "-O3", "-fno-slp-vectorize", "-S",
                           *linked(CACHE / "images-r600.bc", f"{LIBCLC}/{name}-r600--.bc")).read_text()
    return {
        "registers": str(largest(r"^\t\.long\t166100\n\t\.long\t(\d+)$", listing, lambda value: value & 255)),
        "local": largest(r"^\t\.long\t166120\n\t\.long\t(\d+)$", listing, lambda dwords: 4 * dwords),
        "indexed": len(re.findall(r"MOVA_INT", listing)),
        "images": len(re.findall(r"^\s+TEX_(?:SAMPLE|LD)", listing, re.M)),
    }


def ptx(source, target):
    """PTX, NVIDIA's assembly language."""
    # without it clang writes an older PTX, which has no shfl.sync or no mbarrier.expect_tx
    version = "+ptx60" if int(target.ptx[3:]) < 70 else "+ptx80"
    return source.clang(NEW_CLANG, PTX, "kernel.ptx", "-Xclang", "-target-cpu", "-Xclang", target.ptx,
                        "-Xclang", "-target-feature", "-Xclang", version, "-O3", "-S",
                        *linked(CACHE / "images-nvptx.bc", f"{LIBCLC}/nvptx64--nvidiacl.bc"))


def nvidia(source, target, _name):
    """NVIDIA."""
    path = ptx(source, target)
    assembly = path.read_text()
    # ptxas takes up to 48 KiB of local memory whose size it knows, but any that is declared elsewhere
    large = r"^\s*\.shared (.*)\[\d{5,}\];$"
    elsewhere = "".join(f".extern .shared {name}[];\n" for name in re.findall(large, assembly, re.M))
    path.write_text(re.sub(r"^\.address_size.*\n", r"\g<0>" + elsewhere, re.sub(large, "", assembly, flags=re.M), flags=re.M))
    registers = [n for n in (source.registers, target.registers) if n]
    options = [f"-maxrregcount={min(registers)}"] if registers else []
    said = run(target.ptxas, "-v", f"-arch={target.assembled_for}", *options, "-o", source.directory / "kernel.cubin", path)
    return {
        "registers": str(largest(r"Used (\d+) registers", said)),
        "local": local_memory(assembly),
        "spills": max(largest(r"(\d+) bytes stack frame", said), largest(r"(\d+) bytes spill stores", said)),
        "images": len(re.findall(r"\btex\.", assembly)),
        "calls": len(re.findall(PTX_CALL, assembly, re.M)),
    }


def local_memory(assembly):
    """Bytes of a work-group of the kernel that takes most, from PTX."""
    shared = re.findall(r"\.shared .*\.b(\d+)\s+([^\s\[;]+)(?:\[(\d+)\])?;", assembly)
    kernels = assembly.split(".entry")[1:]
    return max(sum(int(bits) // 8 * int(length or 1) for bits, name, length in shared if name in kernel)
               for kernel in kernels)


def limits(source, target, _name):
    """A device without a compiler."""
    assembly = ptx(source, target).read_text()
    return {
        "registers": "-",
        "local": local_memory(assembly),
        "calls": len(re.findall(PTX_CALL, assembly, re.M)),
    }


def largest(pattern, text, value=int, otherwise=None):
    """The largest of the numbers that a pattern finds."""
    found = [value(int(number)) for number in re.findall(pattern, text, re.M)]
    if not found and otherwise is None:
        raise Failed(f"the compiler's output has no {pattern}")
    return max(found, default=otherwise)


CHECKS = {"lint": Target(lint, None, None), "spir-v": Target(spir_v, None, None)}
DEVICES = {
    "cypress": Target(vliw, 256, 32 << 10),
    "cayman": Target(vliw, 256, 32 << 10),
    "tahiti": Target(gcn, 256, 32 << 10),
    "hawaii": Target(gcn, 256, 32 << 10),
    "gfx803": Target(gcn, 256, 64 << 10),
    "gfx900": Target(gcn, 256, 64 << 10),
    "gfx90a": Target(gcn, 256, 64 << 10),
    "gfx1030": Target(gcn, 256, 64 << 10),
    "gt200": Target(limits, 512, 16 << 10, "sm_20"),
    "sm_20": Target(nvidia, 1024, 48 << 10, "sm_20", OLD_PTXAS, "sm_35", 63),
    "sm_30": Target(nvidia, 1024, 48 << 10, "sm_30", OLD_PTXAS, "sm_35", 63),
    "sm_35": Target(nvidia, 1024, 48 << 10, "sm_35", OLD_PTXAS, "sm_35"),
    **{name: Target(nvidia, 1024, 48 << 10, name, NEW_PTXAS, name)
       for name in ("sm_52", "sm_61", "sm_70", "sm_75", "sm_80", "sm_89")},
    "sm_90": Target(nvidia, 1024, 227 << 10, "sm_90", NEW_PTXAS, "sm_90"),
    "sm_120": Target(nvidia, 1024, 48 << 10, "sm_90", NEW_PTXAS, "sm_120"),
}
TARGETS = CHECKS | DEVICES

# Lines of a grid that only some devices can transform: work-items and local memory that they need, as in LONG_LINES of
# src/kernel/grid_lines.rs. Elsewhere, plans transform them in other ways.
LONG_LINES = {4096: (256, 32 << 10), 8192: (1024, 48 << 10), 16384: (1024, 227 << 10)}


def is_too_long(kernel, target):
    """Whether a kernel is for lines that a device has no room for."""
    length = re.match(r"grid-(?:rows|columns)-(\d+)-", kernel.name)
    group, local = LONG_LINES.get(int(length[1]), (0, 0)) if length and target.local else (0, 0)
    return target.group is not None and (target.group < group or target.local < local)


def compiled(kernel, code, name):
    """Compiles a kernel for a target; what came of it, with `skipped` or `failed` where there is a reason."""
    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as directory:
        try:
            source = Source(kernel, code, target, directory)
            if source.has_ptx and target.compile not in (lint, nvidia, limits):
                return {"skipped": "the kernel has PTX inside"}
            if source.has_built_in and target.compile is not gcn:
                return {"skipped": "the kernel calls a function of the device's compiler"}
            if is_too_long(kernel, target):
                return {"skipped": "the device has no room for lines of this length"}
            if target.compile is vliw and re.search("grid-(rows|columns)", str(kernel)):
                return {"skipped": "gridding is for none of these cards: the compiler has too few registers for its lines"}
            if source.has_sub_groups and target.compile is not lint:
                return {"skipped": "no library here has the sub-group shuffles"}
            return {"reads_images": source.reads_images} | target.compile(source, target, name)
        except Failed as failed:
            return {"failed": str(failed).replace(f"{directory}/", "").replace(f"{ROOT}/", "")}


def cached(kernel, code, name, version):
    """`compiled`, unless it was before; failures are tried again."""
    path = place_of("json", version, name, options_of(kernel, TARGETS[name]), code)
    if path.exists():
        return json.loads(path.read_text())
    result = compiled(kernel, code, name)
    if "failed" not in result:
        keep(path, json.dumps(result))
    return result


def prepare():
    """What compiling needs beside the tools; returns what results depend on beside the kernel."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    sources = [pathlib.Path(__file__)]
    for compiler, target, name in (OLD_CLANG, VLIW, "images-r600"), (NEW_CLANG, PTX, "images-nvptx"):
        sources.append(HERE / f"{name}.ll")
        run(compiler, "-target", target, "-Wno-override-module", "-c", "-emit-llvm", "-o", CACHE / f"{name}.bc", sources[-1])
    return [run(tool, "--version") for tool in TOOLS] + [source.read_text() for source in sources]
