"""Imports all of featherlane, and steps, in a Python without the modules and functions that only POSIX systems have.

`python no_posix.py` prints the number of imported modules.  Other libraries are imported before, because they have
their own substitutes on Windows.
"""

import importlib.util
import os
import signal
import sys
import time

MODULES = "fcntl grp posix pty pwd readline resource syslog termios tty crypt nis spwd".split()
OS = """chown chroot ctermid fchdir fchown fork forkpty getegid geteuid getgid getgrouplist getgroups getloadavg getpgid
getpgrp getpriority getresuid getsid getuid initgroups killpg lchown major mkfifo mknod nice openpty pathconf
posix_spawn pread pwrite register_at_fork sched_getaffinity sched_setaffinity sched_yield sendfile setegid seteuid
setgid setpgid setsid setuid statvfs sync sysconf ttyname uname wait wait3 wait4 waitid WNOHANG""".split()
SIGNALS = "SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGUSR1 SIGUSR2 alarm setitimer pause sigwait".split()
OTHERS = [(time, "tzset"), (time, "CLOCK_MONOTONIC"), (time, "clock_gettime"), (time, "pthread_getcpuclockid")]


class Absent:
    """Finder that refuses the modules above."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def remove_posix() -> None:
    """Removes what Windows does not have from this process."""
    sys.meta_path.insert(0, Absent())
    for name in MODULES:
        sys.modules.pop(name, None)
    for holder, name in [*((os, n) for n in OS), *((signal, n) for n in SIGNALS), *OTHERS]:
        if hasattr(holder, name):
            delattr(holder, name)


def names() -> list[str]:
    """Returns the names of all modules of featherlane, without importing them."""
    home = importlib.util.find_spec("featherlane").submodule_search_locations[0]
    return [
        ".".join(["featherlane", *os.path.relpath(os.path.join(folder, f[:-3]), home).split(os.sep)])
        for folder, _, files in os.walk(home)
        for f in files
        if f.endswith(".py") and f not in ("__main__.py", "__init__.py")
    ]


def main() -> None:
    for library in sys.argv[1:]:
        importlib.import_module(library)
    remove_posix()
    import featherlane as fl
    from featherlane.errors import InstallationError

    imported = []
    for name in sorted(names()):
        try:
            imported.append(importlib.import_module(name))
        except (ImportError, InstallationError) as error:  # of libraries that are not installed
            if any(repr(missing) in str(error) for missing in MODULES) or "named 'featherlane" in str(error):
                raise
    model = fl.bundled("cartpole")
    batch = fl.Batch(model, 3)
    batch.step(2)
    assert (batch.time == 2 * model.opt.timestep).all()
    from featherlane.apps.cli import main as command

    sys.argv = ["featherlane", "simulate", "cartpole", "--seconds", "0.1"]
    try:
        command()
    except SystemExit as end:
        assert not end.code, end.code
    print(len(imported))


if __name__ == "__main__":
    main()
