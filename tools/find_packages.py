# SPDX-License-Identifier: Apache-2.0
"""Prints, for CMake, "<folder of pjrt_c_api.h>;<folder of torch>" (empty where not found).

Nothing is imported: importing torch would load the very extension that is being built. pip's build isolation hides the
environment's packages from `import`, but not from sysconfig; torch is deliberately no build requirement, since the
extension must be built against the one that is installed.
"""

import os
import site
import sys
import sysconfig


def folders():
    paths = [os.environ.get("TT_SITE_PACKAGES", "")] + sys.path
    paths += [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")] + site.getsitepackages()
    if site.ENABLE_USER_SITE:
        paths.append(site.getusersitepackages())
    return [path for path in paths if path]


def find(*parts):
    for folder in folders():
        path = os.path.join(folder, *parts)
        if os.path.exists(path):
            return path
    return ""


if __name__ == "__main__":
    header = find("xla_plugins", "xla_cpu_pjrt", "include", "pjrt_c_api.h")
    library = find("torch", "lib", "libtorch_cpu.so")
    torch = os.path.dirname(os.path.dirname(library)) if library else ""
    print(os.path.dirname(header) + ";" + torch)
