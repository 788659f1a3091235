"""The traps that a box sets for the host that looks at its files. One function is called in each box."""


def a_report_that_is_a_link():
    """Set a report that is a link."""
    import os

    os.symlink("/etc/passwd", "report.xml")


def a_folder_that_is_a_link():
    """Set a folder that is a link."""
    import os

    os.symlink("/etc", "reports")


def a_report_that_is_a_fifo():
    """Set a report that is a fifo."""
    import os

    os.mkfifo("report.xml")


def a_report_of_one_tebibyte():
    """Set a report of one tebibyte."""
    open("report.xml", "wb").truncate(2**40)


def a_report_that_is_a_folder():
    """Set a report that is a folder."""
    import os

    os.mkdir("report.xml")


def a_report_that_may_not_be_read():
    """Set a report that may not be read."""
    import os

    open("report.xml", "w").write("x")
    os.chmod("report.xml", 0)


def a_link_that_points_at_itself():
    """Set a link that points at itself."""
    import os

    os.symlink("report.xml", "report.xml")


def names_with_line_ends_of_full_length_and_options():
    """Set names with line ends, of full length, and options."""
    open("-n\nreport", "w").write("x")
    open("a" * 255, "w").write("y")


def folders_a_thousand_deep():
    """Set folders a thousand deep."""
    import os

    for _ in range(1000):
        os.mkdir("d")
        os.chdir("d")
    open("/work/x", "w").write("x")


def a_setuid_program():
    """Set a setuid program."""
    import os
    import shutil

    shutil.copy("/bin/true", "tool")
    os.chmod("tool", 0o6755)
    open("x", "w").write("x")


def a_link_where_the_host_writes():
    """Set a link where the host writes."""
    import os

    os.symlink("/etc/passwd", "fixed.py")


def a_linked_folder_where_the_host_writes():
    """Set a linked folder where the host writes."""
    import os

    os.symlink("/etc", "src")


def a_git_configuration_that_runs_programs():
    """Set a git configuration that runs programs."""
    import subprocess as s

    s.run(["git", "init", "-q"])
    s.run(["git", "config", "core.fsmonitor", "touch /work/ran; false"])
    s.run(["git", "config", "diff.external", "touch /work/ran"])


def a_repository_planted_in_the_tree():
    """Set a repository planted in the tree."""
    import subprocess as s

    s.run(["git", "init", "-q", "sub"])
    s.run(["git", "-C", "sub", "config", "core.fsmonitor", "touch /work/ran; false"])


def a_git_file_that_points_elsewhere():
    """Set a .git file that points elsewhere."""
    open(".git", "w").write("gitdir: /tmp/evil")
    import subprocess as s

    s.run(["git", "init", "-q", "--bare", "/tmp/evil"])


def a_bare_repository_for_a_tree():
    """Set a bare repository for a tree."""
    import subprocess as s

    s.run(["git", "init", "-q", "--bare", "."])
    s.run(["git", "config", "core.bare", "false"])
