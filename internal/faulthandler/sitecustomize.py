# Written by gangrun for --faulthandler. Python imports this file before the program. From then on, Python
# writes the stacks of all threads to the file $GANGRUN_FAULTHANDLER when it gets signal 57, and goes on.
import os
import sys


def register():
    path = os.environ.get("GANGRUN_FAULTHANDLER")
    if not path:
        return
    import faulthandler

    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:  # leave the lowest descriptors to the program, which may count on their numbers
        import fcntl

        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 200)
        os.close(fd)
        fd = high
    except (ImportError, AttributeError, OSError):
        pass
    # With chain=True, the default action of the signal would follow, which is to end the process.
    faulthandler.register(57, file=fd, all_threads=True, chain=False)


try:
    register()
except Exception:  # the program must run without it
    pass

# This file hides a sitecustomize of the user or of the system. Import that one in its place. If
# there is none, site expects the ImportError.
here = os.path.dirname(os.path.abspath(__file__))
others = [p for p in sys.path if os.path.abspath(p) != here]
if len(others) < len(sys.path):
    sys.path[:] = others
    del sys.modules["sitecustomize"]
    import sitecustomize
