# Text tests: programs with RUN lines, judged by FileCheck. The site file that the build writes sets the paths.
import ctypes
import os
import shutil

import lit.formats

config.name = "lfuser"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".lf", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.join(config.lfuser_source_dir, "test", "text")
config.test_exec_root = os.path.join(config.lfuser_build_dir, "test", "text")

config.environment["PATH"] = os.pathsep.join([config.llvm_bindir, config.environment.get("PATH", "")])
config.environment["LC_ALL"] = "C"
config.environment["LFUSER_CACHE"] = "off"  # what is compiled is compiled anew
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS", "LFUSER_TEST_DEVICE", "XDG_CACHE_HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

device = lit_config.params.get("device", "cpu")
bin_dir = os.path.join(config.lfuser_build_dir, "bin")
config.substitutions += [
    ("%lfuser-opt", os.path.join(bin_dir, "lfuser-opt")),
    ("%lfuser-run", os.path.join(bin_dir, "lfuser-run")),
    ("%lfuser-bench", os.path.join(bin_dir, "lfuser-bench")),
    ("%liblfuser", os.path.join(config.lfuser_build_dir, "lib", "liblfuser.so")),
    ("%workloads", os.path.join(config.lfuser_source_dir, "tools", "lfuser-bench", "workloads")),
    ("%device", device),
    ("%examples", os.path.join(config.lfuser_source_dir, "docs", "examples")),
    ("%python", config.python),
]

config.available_features.add("device-" + device)
if config.sanitize:
    config.available_features.add("sanitizer")

ptxas = shutil.which("ptxas") or shutil.which("ptxas", path="/usr/local/cuda/bin")
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))

try:
    ctypes.CDLL("libcuda.so.1")
except OSError:
    config.available_features.add("no-cuda-driver")
